import { Refusal } from "../../../sandbox/errors.ts";
import type { LateRun, RunHooks } from "../../../sandbox/gateway/run-hooks.ts";

/**
 * The hooks of an invocation, which sends requests and calls others only while `mayRequest` returns true. The
 * code of an aborted invocation continues in its isolate, so this includes the hooks for work that an ended
 * invocation left running.
 */
export function requestsWhile(mayRequest: () => boolean, run: RunHooks): RunHooks {
  const guarded =
    <A extends unknown[], R>(call: (...given: A) => Promise<R>) =>
    async (...given: A): Promise<R> => {
      if (!mayRequest()) throw new Refusal("The workflow instance runs elsewhere, or has ended.");
      return call(...given);
    };
  return {
    accountId: run.accountId,
    fetch(url, request, response) {
      if (mayRequest()) run.fetch(url, request, response);
      else response.destroy();
    },
    upgrade(url, request, socket, head) {
      if (mayRequest() && run.upgrade !== undefined) run.upgrade(url, request, socket, head);
      else socket.destroy();
    },
    answered: () => late(mayRequest, run.answered?.()),
    ...(run.nested && { nested: guarded(async (binding: string) => run.nested!(binding)) }),
    ...(run.dispatch && {
      dispatch: guarded(async (binding: string, options: string, outbound: string) =>
        run.dispatch!(binding, options, outbound),
      ),
    }),
    ...(run.child && {
      child: guarded(async (child: Parameters<NonNullable<RunHooks["child"]>>[0]) => run.child!(child)),
    }),
    ...(run.object && {
      object: guarded(async (...given: Parameters<NonNullable<RunHooks["object"]>>) => run.object!(...given)),
    }),
  };
}

const late = (mayRequest: () => boolean, run: LateRun | undefined): LateRun | undefined =>
  run && (() => requestsWhile(mayRequest, typeof run === "function" ? run() : run));
