import type { Logger } from "pino";
import { CellError, type CellErrorKind } from "../../sandbox/errors.ts";
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

/** The outcome of a run, in the words of the public data set's field `WorkerStatus`. */
const logStatuses: Record<CellErrorKind, string> = {
  cpu: "exceededCpu",
  memory: "exceededMemory",
  crashed: "internalError",
  exception: "exception",
  overloaded: "loadShed",
  unavailable: "internalError",
};

const rootOf = (edgeRequest: EdgeRequest): RunRoot => ({
  edgeRequest,
  next: async ({ pathname, search }, request, response, via) =>
    edgeRequest.next(request, response, pathname + search, via),
  nextUpgrade: async ({ pathname, search }, request, socket, head, via) =>
    edgeRequest.nextUpgrade(request, socket, head, pathname + search, via),
  hops: edgeRequest.via?.hops ?? 0,
  tree: edgeRequest.via?.tree,
  limitFault: undefined,
});

/** The script that answers a request, if one does. */
export const scriptOfRequest = (
  router: ScriptRouter,
  { host, path, isTls, zone }: EdgeRequest,
): LiveScript | undefined =>
  router.find({
    scheme: isTls ? "https" : "http",
    host,
    path,
    zone:
      zone?.configuration === undefined
        ? undefined
        : { id: zone.id, accountId: zone.configuration.accountId },
  });

/**
 * Edge handlers that run the script of a request: by a zone's route, a custom domain, or the script's own
 * host name.
 */
export function scriptHandlers(
  router: ScriptRouter,
  runtime: Runtime,
  logger: Logger,
  isAuthor: (edgeRequest: EdgeRequest) => boolean,
): { handler: EdgeHandler; upgradeHandler: UpgradeHandler } {
  const handle = async (
    edgeRequest: EdgeRequest,
    live: LiveScript,
    root: RunRoot,
    run: Promise<void>,
  ): Promise<true> => {
    const { record } = edgeRequest;
    record?.runsScript(live.name);
    try {
      await run;
      return true;
    } catch (error) {
      record?.scriptFails(error instanceof CellError ? logStatuses[error.kind] : "unknown");
      if (!(error instanceof CellError)) throw error;
      const { name: script, accountId: account, versionId: version } = live;
      logger.warn(
        { script, account, version, ray: edgeRequest.ray, err: error.cause ?? error },
        "a script failed",
      );
      throw visitorError(error, root.limitFault, isAuthor(edgeRequest));
    }
  };
  return {
    handler(edgeRequest: EdgeHttpRequest) {
      const live = scriptOfRequest(router, edgeRequest);
      if (live === undefined) return false;
      const root = rootOf(edgeRequest);
      return handle(edgeRequest, live, root, runtime.answer(edgeRequest, live, root));
    },
    upgradeHandler(edgeRequest: EdgeUpgradeRequest) {
      const live = scriptOfRequest(router, edgeRequest);
      if (live === undefined) return false;
      const root = rootOf(edgeRequest);
      return handle(edgeRequest, live, root, runtime.answerUpgrade(edgeRequest, live, root));
    },
  };
}
