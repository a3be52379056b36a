import type { Logger } from "pino";
import { CellError } from "../cells/errors.ts";
import type { EdgeHandler, EdgeVisit, UpgradeHandler, UpgradeVisit, Visit } from "../edge/handlers.ts";
import type { LiveScript } from "../scripts/runtime-script.ts";
import type { ScriptRouter } from "../scripts/router.ts";
import { visitorError } from "./errors.ts";
import type { RunRoot } from "./run.ts";
import type { Runtime } from "./runtime.ts";

/** Gives requests to the scripts that take them: by a zone's route, a domain, or a script's own host name. */
export function scriptHandlers(
  router: ScriptRouter,
  runtime: Runtime,
  logger: Logger,
): { handler: EdgeHandler; upgradeHandler: UpgradeHandler } {
  const find = ({ host, path, isTls, zone }: Visit): LiveScript | undefined =>
    router.find({
      scheme: isTls ? "https" : "http",
      host,
      path,
      zone: zone?.facts === undefined ? undefined : { id: zone.id, accountId: zone.facts.accountId },
    });
  const handle = async (visit: Visit, live: LiveScript, root: RunRoot, run: Promise<void>): Promise<true> => {
    try {
      await run;
      return true;
    } catch (error) {
      if (!(error instanceof CellError)) throw error;
      const { name: script, accountId: account, versionId: version } = live;
      logger.warn({ script, account, version, ray: visit.ray, err: error.cause ?? error }, "a script failed");
      throw visitorError(error, root.limitFault);
    }
  };
  return {
    handler(visit: EdgeVisit) {
      const live = find(visit);
      if (live === undefined) return false;
      const root = { visit, next: visit.next, nextUpgrade: undefined, limitFault: undefined };
      return handle(visit, live, root, runtime.visit(visit, live, root));
    },
    upgradeHandler(visit: UpgradeVisit) {
      const live = find(visit);
      if (live === undefined) return false;
      const root = { visit, next: undefined, nextUpgrade: visit.next, limitFault: undefined };
      return handle(visit, live, root, runtime.visitUpgrade(visit, live, root));
    },
  };
}
