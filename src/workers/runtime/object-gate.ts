import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { Refusal } from "../../sandbox/errors.ts";
import type { RunHooks } from "../../sandbox/gateway/run-hooks.ts";
import type { NearCell } from "../../sandbox/near-cell.ts";
import type { ObjectGrant, ObjectReference, ObjectRoute } from "../../sandbox/protocol.ts";
import type { Span } from "../../platform/tracing/spans/span.ts";
import type { BindingOf } from "../bindings.ts";
import type { Caller } from "../binding.ts";
import type { RunContext, RunLimits } from "./run-context.ts";
import type { OutboundScript } from "./run-parts.ts";
import type { RunRoot } from "./run-root.ts";

export type ObjectBinding = BindingOf<"durable_object_namespace">;

/** A call of a Durable Object. The caller and the binding can be trusted; the reference is hostile input of a script. */
export interface ObjectCall extends ObjectCaller {
  caller: Caller;
  binding: ObjectBinding;
  reference: ObjectReference;
}

/** The part of a run of an object that comes from its caller. */
export interface ObjectCaller {
  /** Whether the caller is in a dispatch namespace. */
  isCustomer: boolean;
  root: RunRoot;
  /** Number of scripts that have called each other up to the object. */
  depth: number;
  /** The limits and the outbound script of a customer's run, which also apply to its own objects. */
  limits: Partial<RunLimits> | undefined;
  outbound: OutboundScript | undefined;
  /** The span of the caller; undefined without traces. */
  span: Span | undefined;
}

/** Calls Durable Objects. Rejects with a Refusal or with the object's exception. */
export interface ObjectGate {
  fetch(
    call: ObjectCall,
    exchange: { url: URL; request: IncomingMessage; response: ServerResponse },
  ): Promise<void>;
  upgrade(
    call: ObjectCall,
    exchange: { url: URL; request: IncomingMessage; socket: Socket; head: Buffer },
  ): Promise<void>;
  /**
   * Prepares a method call. `slot` is the calling cell's, if it is a cell of objects; live logs show `method`.
   */
  route(call: ObjectCall, slot: number | undefined, method: string): Promise<ObjectRoute>;
  /** Lets the cell of a slot make calls like this one without asking; undefined if the gateway must see each call. */
  grant(call: ObjectCall, slot: number | undefined): Promise<ObjectGrant | undefined>;
  /** The hooks of the run that such a call has begun. */
  hooks(call: ObjectCall): Promise<RunHooks>;
  /** The cell of the objects that a script calls, if the script may run there now. */
  near?(context: RunContext): NearCell | undefined;
}

/** The call of an object by a run. */
export const objectCallOf = (
  { caller, root, loaded, limits, outbound, span }: RunContext,
  depth: number,
  binding: ObjectBinding,
  reference: ObjectReference,
): ObjectCall => ({
  caller,
  root,
  isCustomer: loaded.script.namespace !== undefined,
  depth,
  binding,
  reference,
  limits,
  outbound,
  span,
});

const absent = async (): Promise<never> => {
  throw new Refusal("Durable Objects are not available here.");
};
/** Refuses all calls, where the platform runs without Durable Objects. */
export const noObjects: ObjectGate = {
  fetch: absent,
  upgrade: absent,
  route: absent,
  grant: absent,
  hooks: absent,
};
