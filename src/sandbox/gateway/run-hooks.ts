import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import type { CellScript } from "../process/script.ts";
import type { ObjectGrant, ObjectReference, ObjectRoute } from "../protocol.ts";
import type { Child } from "./cell-messages.ts";

/** Calls in a cell: of a run since it asked last, and of all runs that one run of the gateway has led to. */
export interface UncountedCalls {
  ofRun: number;
  ofFamily: number;
}

/** An object that a run calls. All methods reject with an error for the script. */
export interface RunObject {
  /** Prepares a method call. `slot` is the calling cell's, if it is a cell of objects; live logs show `method`. */
  route(slot: number | undefined, method: string): Promise<ObjectRoute>;
  /**
   * Lets the script call the object in its cell without asking for each call; undefined if it may not. `made` counts
   * such calls that the gateway has not counted yet.
   */
  grant(slot: number | undefined, made: UncountedCalls): Promise<ObjectGrant | undefined>;
  /** The hooks of the run that such a call has begun, at its first request. */
  hooks(): Promise<RunHooks>;
}

/** How the gateway answers the requests that a script makes during one run. */
export interface RunHooks {
  /** The account of the script; frames of its WebSockets count for it. */
  readonly accountId?: string | undefined;
  /** The script fetches `url`. The answer goes to `response`, or `refuse` makes the fetch throw. */
  fetch(url: URL, request: IncomingMessage, response: ServerResponse): void;
  /**
   * Called when the script has answered. Returns the hooks for work that it left running; without this, these
   * hooks stay.
   */
  answered?(): LateRun | undefined;
  /** A snippet sends or reads a body that belongs to its channel; `what` says which. */
  native?(what: string, request: IncomingMessage, response: ServerResponse): void;
  /** The script calls a method of another script through a binding. Rejects with an error for the script. */
  nested?(binding: string): Promise<NestedRun>;
  /**
   * The script dispatches to a customer's script. `options` and `outbound` are JSON. Rejects with an error
   * for the script.
   */
  dispatch?(binding: string, options: string, outbound: string): Promise<Dispatched>;
  /** Returns the hooks of a dispatched script, at its first request. */
  child?(child: Child): Promise<RunHooks>;
  /** The Durable Object that the script calls. Rejects with an error for the script. */
  object?(binding: string, reference: ObjectReference): Promise<RunObject>;
  /** The script opens a WebSocket or another upgrade. Refused when absent. */
  upgrade?(url: URL, request: IncomingMessage, socket: Duplex, head: Buffer): void;
}

/**
 * Hooks after the answer, or a function that makes them: very many runs are kept for a while, and few of them
 * make requests.
 */
export type LateRun = RunHooks | (() => RunHooks);

/** The target of a dispatch. */
export interface Dispatched {
  script: CellScript;
  /**
   * Whether the dispatch must go through the gateway, which then runs the script in a cell chosen by its own
   * state.
   */
  isWatched: boolean;
  /** Whether the cell may reuse the result until the configuration changes. */
  isLasting: boolean;
}

/** A script that a method call starts in the same cell, on behalf of a run. */
export interface NestedRun {
  script: CellScript;
  entrypoint: string;
  hooks: RunHooks;
  /** Called when the call has ended, if its end matters. */
  ended?(): void;
}
