import type { Send } from "../../../edge/origin/outbound.ts";
import type { IncomingMessage } from "node:http";
import { VisitorError } from "../../../edge/http/errors.ts";
import { transformationErrors } from "./errors.ts";
import { getRequest, ReceivedResponse } from "./exchange.ts";
import { transformationPrefix } from "./request.ts";

const redirectsMax = 5;
const timeoutSeconds = 30;
/** Identifies this platform to the origin and to scripts on the way. */
export const via = "1.1 image-resizing";

export const isOfTransformation = (headers: IncomingMessage["headers"]): boolean =>
  headers.via?.includes("image-resizing") === true;

/**
 * Fetches a picture and follows redirects. `take` gets the response, which is 200 or 304, and reads its body.
 * No cookie or authorization of the visitor is sent, so that the result may be shared.
 */
export async function fetchOriginal<T>(
  source: URL,
  headers: readonly string[],
  send: Send,
  take: (answer: ReceivedResponse) => Promise<T>,
): Promise<T> {
  let url = source;
  const deadline = AbortSignal.timeout(timeoutSeconds * 1000);
  for (let redirects = 0; ; redirects++) {
    const answer = new ReceivedResponse();
    const end = (): void => {
      answer.destroy();
    };
    deadline.addEventListener("abort", end, { once: true });
    try {
      await receive(url, headers, send, answer);
      const { status } = answer;
      const location = answer.headers.get("location");
      if (status >= 300 && status < 400 && status !== 304 && location !== undefined) {
        if (redirects === redirectsMax) throw transformationErrors.redirects(redirectsMax);
        url = redirected(location, url);
        continue;
      }
      check(status);
      return await take(answer);
    } catch (error) {
      throw deadline.aborted ? transformationErrors.tooSlow(timeoutSeconds) : error;
    } finally {
      deadline.removeEventListener("abort", end);
      answer.destroy();
    }
  }
}

async function receive(
  url: URL,
  headers: readonly string[],
  send: Send,
  answer: ReceivedResponse,
): Promise<void> {
  const request = getRequest(url.pathname + url.search, ["Host", url.host, ...headers, "Via", via]);
  const sent = send(url, request, answer.asServerResponse());
  // `sent` resolves after the whole response, which waits for its reader.
  const failed = sent.then(
    () => new Promise<never>(() => {}),
    (error: unknown) => {
      answer.destroy();
      throw error instanceof VisitorError && error.status < 500 && error.status !== 404
        ? transformationErrors.invalidUrl(error.title)
        : transformationErrors.unreachable();
    },
  );
  failed.catch(() => {}); // after the head, the end of the body reports it
  await Promise.race([answer.head.catch(() => Promise.reject(transformationErrors.unreachable())), failed]);
}

function redirected(location: string, from: URL): URL {
  if (!URL.canParse(location, from.href)) throw transformationErrors.badRedirect();
  const url = new URL(location, from);
  if (!/^https?:$/.test(url.protocol) || url.pathname.startsWith(transformationPrefix))
    throw transformationErrors.badRedirect();
  return url;
}

function check(status: number): void {
  if (status === 200 || status === 304) return;
  if (status === 404 || status === 410) throw transformationErrors.notFound();
  if (status >= 400 && status < 500) throw transformationErrors.refused(status);
  throw transformationErrors.originFault(status);
}
