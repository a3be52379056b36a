import type { Send } from "../../../edge/origin/outbound.ts";
import type { ProcessCalls } from "../../../platform/process-calls/calls.ts";
import { Kept } from "../../../platform/process-calls/kept.ts";
import { failing, understood } from "../../../workers/call-failures.ts";
import type { AnswerImageFetch, PictureOwner } from "../../../workers/runtime/runtime-options.ts";

const fetchName = "image fetch";
const originalName = "original of an image fetch";

interface FetchDetails {
  owner: PictureOwner;
  /** The options as JSON. */
  image: string;
  /** Where the main process requests the original: the script's process, and the name there of the script's `send`. */
  from: { path: string; send: string };
}

/**
 * In edge processes: the main process transforms the picture that a script fetches, because it has the
 * caches. It requests the original from this process, because only the visitor's request here may lead to it.
 */
export function imageFetchInMain(calls: ProcessCalls): AnswerImageFetch {
  const sends = new Kept<Send>();
  const inFlight = new Set<Send>();
  calls.serve<{ send: string }>(originalName, async ({ send }, { url, request, response }) => {
    const kept = sends.find(send);
    if (kept === undefined) throw new Error("The edge process no longer has the request for this original");
    await failing(kept(url, request, response));
  });
  return async (owner, { image, url, send }, request, response) => {
    const details: FetchDetails = { owner, image, from: { path: calls.path, send: sends.nameOf(send) } };
    inFlight.add(send);
    try {
      await understood(calls.forward(fetchName, details, { url, request, response }));
    } finally {
      inFlight.delete(send);
    }
  };
}

/** In the main process: answers the fetches of scripts in edge processes. */
export const serveImageFetches = (calls: ProcessCalls, answer: AnswerImageFetch): void =>
  calls.serve<FetchDetails>(fetchName, async ({ owner, image, from }, { url, request, response }) => {
    const send: Send = async (to, asked, answered) =>
      understood(
        calls.forward(
          originalName,
          { send: from.send },
          { url: to, request: asked, response: answered },
          from.path,
        ),
      );
    await failing(answer(owner, { image, url, send }, request, response));
  });
