import type { IncomingMessage } from "node:http";
import type { Http2ServerRequest } from "node:http2";
import type { RequestDescription } from "../../rules/language.ts";
import { plans } from "../../control/zones/plans.ts";
import type { EdgeSettings } from "../http/settings.ts";
import type { EdgeZone } from "../configuration/snapshot.ts";

/** Bytes of bodies that a zone's rules see: by its plan, up to the installation's limit. */
export const bodyPrefixBytesMax = ({ ruleBodyBytesMax }: EdgeSettings, zone: EdgeZone | undefined): number =>
  Math.min(ruleBodyBytesMax, plans[zone?.configuration?.plan ?? "enterprise"].ruleBodyBytesMax);

export type BodyPrefix = NonNullable<RequestDescription["body"]>;

/** Longest wait for the prefix. Later bytes are not seen by rules. */
const waitMs = 10_000;
const none: BodyPrefix = { raw: "", size: 0, truncated: false };

/** Whether the whole body has arrived, read or not. HTTP/2 only shows this on the underlying stream. */
const hasCome = (request: IncomingMessage | Http2ServerRequest): boolean =>
  "stream" in request ? request.stream.readableEnded : request.complete;

/**
 * Reads the beginning of a request's body for rules and puts it back, so that the whole body can be read
 * later. No more than `bytesMax`, rounded up to the last chunk, is read from the visitor meanwhile.
 */
export async function readPrefix(request: IncomingMessage, bytesMax: number): Promise<BodyPrefix> {
  const { "content-length": length, "transfer-encoding": coding } = request.headers;
  if (length === undefined && coding === undefined) return none;
  const chunks: Buffer[] = [];
  let bytes = 0;
  const { promise, resolve } = Promise.withResolvers<BodyPrefix>();
  const take = (): void => {
    // Reads by length, because reading everything at the end would end the stream.
    while (bytes <= bytesMax && request.readableLength > 0) {
      const chunk = request.read(request.readableLength) as Buffer | null;
      if (chunk === null) break;
      chunks.push(chunk);
      bytes += chunk.length;
    }
    if (bytes > bytesMax || hasCome(request)) finish();
  };
  const finish = (): void => {
    clearTimeout(timer);
    request.off("readable", take).off("error", finish).off("close", finish);
    const all = Buffer.concat(chunks);
    // Synchronously: a stream that has ended and is empty would be closed.
    if (bytes > 0 && !request.readableEnded && !request.destroyed) request.unshift(all);
    const truncated = bytes > bytesMax || !hasCome(request);
    resolve({
      raw: all.toString("latin1", 0, bytesMax),
      size: truncated && length !== undefined ? Math.max(Number(length), bytes) : bytes,
      truncated,
    });
  };
  const timer = setTimeout(finish, waitMs);
  request.on("readable", take).on("error", finish).on("close", finish);
  take();
  return promise;
}
