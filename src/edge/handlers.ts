import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { RequestDescription } from "../rules/index.ts";
import type { EdgeZone } from "./snapshot.ts";

/** What is known of a request that has been parsed and may be served, before anything has been done about it. */
export interface Visit {
  request: IncomingMessage;
  /** In lower case, without a port or a final dot. */
  host: string;
  /** The host as the visitor wrote it, with its port. */
  authority: string;
  /** With its query. */
  path: string;
  ray: string;
  clientAddress: string;
  isTls: boolean;
  /** The zone in which the host has a proxied record; undefined for a host that has none here. Never a paused one. */
  zone: EdgeZone | undefined;
  /** What is known of the request, as scripts see it: JSON in ASCII. */
  cf: () => string;
  describe: () => RequestDescription;
  /** The visitor's headers as a script sees them: a flat list that begins with the host. */
  scriptHeaders: () => string[];
}

export interface EdgeVisit extends Visit {
  response: ServerResponse;
  /**
   * Sends this request, or what a script has made of it, on: to the handlers after this one, and then to the origin. The
   * answer goes to `response`. Rejects with a visitor error while nothing has been sent.
   */
  next: (request: IncomingMessage, response: ServerResponse, path: string) => Promise<void>;
}

/** A request for a WebSocket, on a connection that is no longer HTTP's. */
export interface UpgradeVisit extends Visit {
  socket: Socket;
  /** What came after the request. */
  head: Buffer;
  /** Joins a connection with one to the origin. Rejects with a visitor error while nothing has been sent. */
  next: (request: IncomingMessage, socket: Socket, head: Buffer, path: string) => Promise<void>;
}

/**
 * Takes a request before it goes to the origin, or leaves it. True when it is taken: the handler answers it then, to its
 * end. What it throws is answered as a visitor error, while nothing has been sent. One that leaves a request has not
 * touched its body or its response.
 */
export type EdgeHandler = (visit: EdgeVisit) => boolean | Promise<boolean>;

/** The same for upgrades. */
export type UpgradeHandler = (visit: UpgradeVisit) => boolean | Promise<boolean>;
