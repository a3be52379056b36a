import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { apiErrors } from "./errors.ts";

/** Throws 412 if a resource is not in the state that the caller has seen; undefined for one that does not exist. */
export type Expects = (tag: string | undefined) => void;

/** A tag and the separators before it, see RFC 9110, 5.6.1 and 8.8.3: a tag may contain commas. */
const tagInList = /[\t ,]*((?:W\/)?"[\x21\x23-\x7e\x80-\xff]*")[\t ]*(?=,|$)/gy;

/**
 * The condition in the header If-Match of a change. It is checked in the transaction of the change, against the tag of
 * the current state. Without the header, every state is accepted.
 */
export function expected({ headers }: Pick<IncomingMessage, "headers">): Expects {
  const header = headers["if-match"];
  if (header === undefined) return () => {};
  const tags = header.trim() === "*" ? undefined : tagsIn(header);
  return (tag) => {
    if (tag === undefined) throw apiErrors.nothingToMatch();
    // A weak tag is equal to no other one.
    if (tags?.includes(`"${tag}"`) === false) throw apiErrors.changedMeanwhile(tag);
  };
}

function tagsIn(header: string): string[] {
  const found = [...header.matchAll(tagInList)];
  const read = found.reduce((length, [text]) => length + text.length, 0);
  if (found.length === 0 || !/^[\t ,]*$/.test(header.slice(read)))
    throw apiErrors.invalid('Expected entity tags such as "3", or *, in the header If-Match');
  return found.map(([, tag]) => tag!);
}

/** The tag of a list: it differs if a text, or their order, does. */
export const tagOf = (texts: readonly string[]): string =>
  createHash("sha256").update(JSON.stringify(texts)).digest("base64url").slice(0, 22);
