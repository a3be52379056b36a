import type { IncomingMessage } from "node:http";
import type { AccessRecord } from "../../platform/access-log/access-record.ts";
import type { Span } from "../../platform/tracing/spans/span.ts";
import type { RequestDescription } from "../../rules/language.ts";
import type { EdgeZone, HostEntry } from "../configuration/snapshot.ts";
import { scriptHeaders, type ForwardedRequest } from "../http/headers.ts";
import type { Via } from "../http/via.ts";
import type { EdgeRequest, WaysOn } from "./handlers.ts";
import type { RequestTarget } from "./request-target.ts";

/** A request's target and its entry in the snapshot. */
export interface Found extends RequestTarget {
  zone: EdgeZone | undefined;
  entry: HostEntry | undefined;
  /** The address of the connection: the client or a trusted proxy. */
  peerAddress: string;
  clientAddress: string;
  isTls: boolean;
  via: Via | undefined;
  cf: () => string;
  describe: () => RequestDescription;
  readBody: () => Promise<void>;
  record: AccessRecord | undefined;
  span: Span | undefined;
}

/** The handlers' view of a request, or of a request that a handler passes on, without its ways on. */
export const edgeRequestOf = (
  found: Found,
  request: IncomingMessage,
  path: string,
  ray: string,
  via: Via | undefined,
): Omit<EdgeRequest, keyof WaysOn> => ({
  request,
  host: found.host,
  authority: found.authority,
  path,
  ray,
  clientAddress: found.clientAddress,
  isTls: found.isTls,
  via,
  zone: found.entry === undefined ? undefined : found.zone,
  cf: found.cf,
  describe: found.describe,
  readBody: found.readBody,
  record: found.record,
  span: via?.span ?? found.span,
  scriptHeaders: () => scriptHeaders(forwarded(found, request, found.authority, ray)),
});

/** A visitor's request, or a script's version of it, with the edge's headers. */
export const forwarded = (
  { peerAddress, clientAddress, isTls }: Found,
  { rawHeaders }: IncomingMessage,
  host: string,
  ray: string,
): ForwardedRequest => ({
  rawHeaders,
  host,
  peerAddress,
  clientAddress,
  scheme: isTls ? "https" : "http",
  ray,
});
