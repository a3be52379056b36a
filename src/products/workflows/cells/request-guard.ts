import type { RunHooks } from "../../../sandbox/gateway/run-hooks.ts";

/** The hooks of an invocation, which sends requests only while `mayRequest` returns true. */
export const requestsWhile = (mayRequest: () => boolean, run: RunHooks): RunHooks => ({
  fetch(url, request, response) {
    if (mayRequest()) run.fetch(url, request, response);
    else response.destroy();
  },
  upgrade(url, request, socket, head) {
    if (mayRequest() && run.upgrade !== undefined) run.upgrade(url, request, socket, head);
    else socket.destroy();
  },
  answered: () => run.answered?.(),
  ...(run.nested === undefined ? {} : { nested: async (binding) => run.nested!(binding) }),
  ...(run.dispatch === undefined
    ? {}
    : { dispatch: async (binding, options, outbound) => run.dispatch!(binding, options, outbound) }),
  ...(run.child === undefined ? {} : { child: async (child) => run.child!(child) }),
});
