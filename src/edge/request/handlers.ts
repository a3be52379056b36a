import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { AccessRecord } from "../../platform/access-log/access-record.ts";
import type { Span } from "../../platform/tracing/spans/span.ts";
import type { RequestDescription } from "../../rules/language.ts";
import type { EdgeZone } from "../configuration/snapshot.ts";
import type { Via } from "../http/via.ts";

/**
 * The phases of handlers, in the order in which they are asked. An earlier handler can hide a request from
 * later ones, so the order of all of them is decided here.
 */
export const handlerPhases = [
  "relay",
  "certificate-challenge",
  "scheme",
  "image-delivery",
  "image-transformation",
  "snippets",
  "scripts",
] as const;
/** The position of a handler in that order. */
export type HandlerPhase = (typeof handlerPhases)[number];

/** The ways of a request on from a handler. */
export interface WaysOn {
  /**
   * Passes this request, or a script's version of it, to the next handlers and then to the origin; from an upgrade, to
   * the origin. The result goes to `response`. Requests of scripts carry `via`. Rejects with a visitor error while
   * nothing has been sent.
   */
  next: (request: IncomingMessage, response: ServerResponse, path: string, via?: Via) => Promise<void>;
  /** Connects a socket to the origin. Rejects with a visitor error while nothing has been sent. */
  nextUpgrade: (
    request: IncomingMessage,
    socket: Socket,
    head: Buffer,
    path: string,
    via?: Via,
  ) => Promise<void>;
}

/** A parsed and accepted request, before any handler has processed it. */
export interface EdgeRequest extends WaysOn {
  request: IncomingMessage;
  /** Lower case, without port and trailing dot. */
  host: string;
  /** The host as the visitor wrote it, with its port. */
  authority: string;
  /** With the query. */
  path: string;
  ray: string;
  clientAddress: string;
  isTls: boolean;
  /** For requests of scripts: the calls that led to them. */
  via: Via | undefined;
  /** The zone with a proxied record for the host; undefined when there is none. Never a paused zone. */
  zone: EdgeZone | undefined;
  /** The `cf` object for scripts: JSON in ASCII. */
  cf: () => string;
  describe: () => RequestDescription;
  /**
   * Adds the beginning of the body to the description. Call it before reading the body; the body stays
   * complete.
   */
  readBody: () => Promise<void>;
  /** The request's entry in the access log; undefined if it has none. */
  record: AccessRecord | undefined;
  /** The span that the handler's work belongs to; undefined without traces. */
  span: Span | undefined;
  /** The visitor's headers for scripts: a flat list that starts with the host. */
  scriptHeaders: () => string[];
}

/** A request that a handler may answer, change or pass on. */
export interface EdgeHttpRequest extends EdgeRequest {
  response: ServerResponse;
}

/** A WebSocket upgrade request. Its connection is no longer managed by the HTTP server. */
export interface EdgeUpgradeRequest extends EdgeRequest {
  socket: Socket;
  /** Bytes received after the request. */
  head: Buffer;
}

/**
 * Takes a request before it goes to the origin, or passes. True when taken: the handler then sends the whole
 * response. Its exceptions become error pages while nothing has been sent. A handler that passes must not
 * touch the body or the response.
 */
export type EdgeHandler = (edgeRequest: EdgeHttpRequest) => boolean | Promise<boolean>;

/** The same for upgrades. */
export type UpgradeHandler = (edgeRequest: EdgeUpgradeRequest) => boolean | Promise<boolean>;
