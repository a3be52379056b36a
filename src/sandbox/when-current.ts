import type { CurrentData } from "../platform/processes/main-channel.ts";
import { unawaited } from "../platform/util/uncaught.ts";
import { outdated } from "./errors.ts";
import { refuse } from "./gateway/gateway-server.ts";
import type { RunHooks } from "./gateway/run-hooks.ts";

/** In an edge process: lets the fetches of a run wait until its data is that of the main process. */
export function whenCurrent(hooks: RunHooks, data: CurrentData | undefined): RunHooks {
  if (data === undefined) return hooks;
  return {
    ...hooks,
    fetch(url, request, response) {
      if (data.isCurrent) return hooks.fetch(url, request, response);
      const answer = (isCurrent: boolean): void =>
        isCurrent ? hooks.fetch(url, request, response) : refuse(response, outdated);
      unawaited(data.becomesCurrent().then(answer));
    },
  };
}
