import type { Socket } from "node:net";
import type { ViaHeader } from "../../../edge/http/via.ts";
import type { Outbound } from "../../../edge/origin/outbound.ts";
import type { ProcessCalls } from "../../../platform/process-calls/calls.ts";
import { unawaited } from "../../../platform/util/uncaught.ts";
import { ObjectRefusal } from "../../../sandbox/errors.ts";
import type { RpcTunnels } from "../../../sandbox/gateway/rpc-tunnels.ts";
import type { ObjectRoute } from "../../../sandbox/protocol.ts";
import { understood } from "../../call-failures.ts";
import { noObjects, type ObjectGate } from "../../runtime/object-gate.ts";
import { OutgoingCalls, callNames } from "./passed-calls.ts";

/** In edge processes: objects are called in main. */
export function objectsInMain(
  calls: ProcessCalls,
  viaHeader: ViaHeader,
  tunnels: RpcTunnels,
  outbound: Outbound,
): ObjectGate {
  const out = new OutgoingCalls(calls, viaHeader, outbound);
  tunnels.ofMain = {
    async faultOf(token) {
      const asked = calls.ask<{ message: string; flags: ObjectRefusal["flags"] } | null>(callNames.fault, {
        token,
      });
      const fault = await asked;
      return fault === null ? undefined : new ObjectRefusal(fault.message, ...fault.flags);
    },
    join(host, from, head) {
      const joined = calls.join(callNames.tunnel, { host }, { headers: [], socket: from as Socket, head });
      unawaited(joined.catch(() => from.destroy())); // the caller gets the fault of its call
    },
  };
  return {
    fetch: async (call, exchange) =>
      understood(calls.forward(callNames.fetch, out.serialize(call), exchange)),
    upgrade: async (call, exchange) => calls.upgrade(callNames.fetch, out.serialize(call), exchange),
    async route(call, _slot, method) {
      return understood(calls.ask<ObjectRoute>(callNames.route, { call: out.serialize(call), method }));
    },
    // Only a cell of objects makes calls without asking, and those are main's.
    grant: async () => undefined,
    hooks: async (call) => noObjects.hooks(call),
  };
}
