import type { IncomingHttpHeaders } from "node:http";
import type { Storage } from "../../../platform/storage/storage.ts";
import { apiErrors } from "../errors.ts";

type Changes = Pick<Storage, "following">;

/**
 * With several nodes, each response names the last change that its node had received, and a request can name the change
 * that the answering node must have received. So a client sees its own writes and earlier reads at every node.
 */
export const seqName = "selvedge-seq";
export const minSeqName = "selvedge-min-seq";

const waitMsMax = 2000;

/** The header of answers; none on a database with one node. */
export function seqHeader({ following }: Changes): Record<string, string> {
  return following === undefined ? {} : { [seqName]: String(following.seq) };
}

/** Adds the header to an answer. */
export function withSeq(answer: Response, changes: Changes): Response {
  for (const [name, value] of Object.entries(seqHeader(changes))) answer.headers.set(name, value);
  return answer;
}

/** Waits until this node has the change that the request names. Throws 400 if it is not a number, 503 after two seconds. */
export async function waitForChange(headers: IncomingHttpHeaders, { following }: Changes): Promise<void> {
  const text = String(headers[minSeqName]);
  if (!/^\d{1,15}$/.test(text))
    throw apiErrors.invalid(
      `Expected a number of at most 15 digits for the header ${minSeqName} but received ${JSON.stringify(text.slice(0, 40))}`,
    );
  if (following === undefined || (await following.reaches(Number(text), waitMsMax))) return;
  throw apiErrors.behind(Number(text), following.takenOver);
}
