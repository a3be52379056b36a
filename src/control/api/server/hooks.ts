import type { IncomingMessage, ServerResponse } from "node:http";
import type { Actor } from "../../access/actor.ts";
import type { Operation } from "../operation.ts";

/** A call as the test kit sees it. The API adds each part as soon as it is known. */
export interface SeenCall {
  /** Undefined for a path without an operation. */
  operation: Operation | undefined;
  incoming: IncomingMessage;
  url: string;
  params: Readonly<Record<string, string>>;
  actor: Actor | undefined;
  /** The parsed body; undefined for one that the operation reads itself. */
  body: unknown;
}

/** The hooks of the test kit in the management API. Each is undefined in production. */
export interface ApiHooks {
  /** Answers a request instead of the API and returns true, or returns false to leave it to the API. */
  request: ((request: IncomingMessage, response: ServerResponse) => boolean) | undefined;
  /** Performs a call, or answers in its place. */
  around: ((call: SeenCall, perform: () => Promise<Response>) => Promise<Response>) | undefined;
  /** Called when the body is known, before the operation's handler. Throws to answer in its place. */
  read: ((call: SeenCall) => Promise<void>) | undefined;
  /** Resets the counters of the rate limit. The API sets this hook. */
  forgetRates: () => void;
}

/** Hooks that nothing uses. */
export const noApiHooks = (): ApiHooks => ({
  request: undefined,
  around: undefined,
  read: undefined,
  forgetRates() {},
});
