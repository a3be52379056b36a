import { cellHeaders } from "../../sandbox/protocol.ts";
import type { RunHooks } from "../../sandbox/gateway/run-hooks.ts";
import { unawaited } from "../../platform/util/uncaught.ts";
import type { AlarmEvent, WebSocketEvent } from "./event.ts";
import type { RunTrace } from "./run-trace.ts";
import { clock } from "../../platform/timers/clock.ts";

/** As in workers/tail/worker/console.ts. */
const unwatchedStatus = 205;

const events: Record<string, () => WebSocketEvent | AlarmEvent> = {
  "trace webSocketMessage": () => ({ getWebSocketEvent: { webSocketEventType: "message" } }),
  "trace webSocketClose": () => ({ getWebSocketEvent: { webSocketEventType: "close" } }),
  "trace webSocketError": () => ({ getWebSocketEvent: { webSocketEventType: "error" } }),
  "trace alarm": () => ({ scheduledTime: new Date(clock.now()).toISOString() }),
};

/**
 * The hooks of an event that no request began. The object sends its logs without knowing whether a live log is open;
 * `traceOf` returns undefined if none is.
 */
export const standingRun = (
  run: RunHooks,
  traceOf: (event: () => WebSocketEvent | AlarmEvent) => RunTrace | undefined,
): RunHooks => ({
  accountId: run.accountId,
  fetch(url, request, response) {
    const event = events[String(request.headers[cellHeaders.event])];
    if (event === undefined) {
      run.fetch(url, request, response);
      return;
    }
    const trace = traceOf(event);
    if (trace === undefined) {
      request.resume();
      response.writeHead(unwatchedStatus).end();
      return;
    }
    trace.end("ok", undefined, false);
    unawaited(trace.collect(request, response));
  },
  nested: async (binding) => run.nested!(binding),
  dispatch: async (binding, options, outbound) => run.dispatch!(binding, options, outbound),
  child: async (child) => run.child!(child),
  object: async (binding, reference) => run.object!(binding, reference),
  upgrade: (url, request, socket, head) => run.upgrade!(url, request, socket, head),
});
