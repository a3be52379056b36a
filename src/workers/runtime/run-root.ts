import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { EdgeRequest } from "../../edge/request/handlers.ts";
import { newCallTree, type CallTree, type Via } from "../../edge/http/via.ts";

/** The part of the visitor's request that runs use. */
export type RunVisitor = Pick<EdgeRequest, "host" | "clientAddress" | "cf" | "span"> & {
  zone: { id: string } | undefined;
};

/** State shared by all runs that one request causes. */
export interface RunRoot {
  /** Undefined for events, and after the answer. */
  edgeRequest: RunVisitor | undefined;
  /** Continue to the zone's origin, if there is one. */
  next:
    | ((to: URL, request: IncomingMessage, response: ServerResponse, via: Via) => Promise<void>)
    | undefined;
  nextUpgrade:
    | ((to: URL, request: IncomingMessage, socket: Socket, head: Buffer, via: Via) => Promise<void>)
    | undefined;
  /** Calls between scripts before the first run, on other nodes or connections. */
  hops: number;
  /** Created on first use. */
  tree: CallTree | undefined;
  /** The last limit that a called script exceeded. */
  limitFault: string | undefined;
}

/** A root for events without a visitor. */
export const withoutVisitor = (): RunRoot => ({
  edgeRequest: undefined,
  next: undefined,
  nextUpgrade: undefined,
  hops: 0,
  tree: undefined,
  limitFault: undefined,
});

/** The counts of all runs that one request causes; created on first use. */
export const treeOf = (root: RunRoot): CallTree => (root.tree ??= newCallTree());
