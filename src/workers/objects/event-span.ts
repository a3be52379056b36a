import type { RunHooks } from "../../sandbox/gateway/run-hooks.ts";
import type { Span } from "../../platform/tracing/spans/span.ts";

/**
 * The hooks of an event that no request began, such as a message of a WebSocket. The server sees only the requests of the
 * event's handler: the span ends when none of them is in progress. Later requests are still children of the span.
 */
export function withinEvent(run: RunHooks, span: Span): RunHooks {
  let inFlight = 0;
  const began = (): (() => void) => {
    inFlight++;
    return () => {
      if (--inFlight === 0) span.end();
    };
  };
  const during = async <T>(work: Promise<T>): Promise<T> => work.finally(began());
  return {
    accountId: run.accountId,
    fetch(url, request, response) {
      response.once("close", began());
      run.fetch(url, request, response);
    },
    nested: async (binding) => during(run.nested!(binding)),
    dispatch: async (binding, options, outbound) => during(run.dispatch!(binding, options, outbound)),
    child: async (child) => during(run.child!(child)),
    object: async (binding, reference) => during(run.object!(binding, reference)),
    upgrade(url, request, socket, head) {
      socket.once("close", began());
      run.upgrade!(url, request, socket, head);
    },
  };
}
