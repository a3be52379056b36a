import type { Logger } from "pino";
import { CellError } from "../../sandbox/errors.ts";
import type {
  EdgeHandler,
  EdgeHttpRequest,
  UpgradeHandler,
  EdgeUpgradeRequest,
  EdgeRequest,
} from "../../edge/request/handlers.ts";
import type { LiveScript } from "../scripts/runtime-script.ts";
import type { ScriptRouter } from "../scripts/routing/router.ts";
import { visitorError } from "./errors.ts";
import type { RunRoot } from "./run-root.ts";
import type { Runtime } from "./runtime.ts";

const rootOf = (visit: EdgeRequest, next: RunRoot["next"], nextUpgrade: RunRoot["nextUpgrade"]): RunRoot => ({
  visit,
  next,
  nextUpgrade,
  hops: visit.via?.hops ?? 0,
  tree: visit.via?.tree,
  limitFault: undefined,
});

/**
 * Edge handlers that run the script of a request: by a zone's route, a custom domain, or the script's own
 * host name.
 */
export function scriptHandlers(
  router: ScriptRouter,
  runtime: Runtime,
  logger: Logger,
  isAuthor: (visit: EdgeRequest) => boolean,
): { handler: EdgeHandler; upgradeHandler: UpgradeHandler } {
  const find = ({ host, path, isTls, zone }: EdgeRequest): LiveScript | undefined =>
    router.find({
      scheme: isTls ? "https" : "http",
      host,
      path,
      zone:
        zone?.configuration === undefined
          ? undefined
          : { id: zone.id, accountId: zone.configuration.accountId },
    });
  const handle = async (
    visit: EdgeRequest,
    live: LiveScript,
    root: RunRoot,
    run: Promise<void>,
  ): Promise<true> => {
    try {
      await run;
      return true;
    } catch (error) {
      if (!(error instanceof CellError)) throw error;
      const { name: script, accountId: account, versionId: version } = live;
      logger.warn({ script, account, version, ray: visit.ray, err: error.cause ?? error }, "a script failed");
      throw visitorError(error, root.limitFault, isAuthor(visit));
    }
  };
  return {
    handler(visit: EdgeHttpRequest) {
      const live = find(visit);
      if (live === undefined) return false;
      const root = rootOf(visit, visit.next, undefined);
      return handle(visit, live, root, runtime.visit(visit, live, root));
    },
    upgradeHandler(visit: EdgeUpgradeRequest) {
      const live = find(visit);
      if (live === undefined) return false;
      const root = rootOf(visit, undefined, visit.next);
      return handle(visit, live, root, runtime.visitUpgrade(visit, live, root));
    },
  };
}
