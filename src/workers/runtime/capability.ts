import { capability } from "../../capability.ts";
import { outbound } from "../../edge/origin/capability.ts";
import { edgeServer } from "../../edge/capability.ts";
import { toMain } from "../../edge/processes/capability.ts";
import { storage } from "../../platform/capability.ts";
import { RoutedRequests } from "../scripts/routing/routed-requests.ts";
import { mebibyte } from "../../platform/bytes.ts";
import { sandbox } from "../../sandbox/capability.ts";
import { assets } from "../assets/capability.ts";
import { scripts } from "../scripts/capability.ts";
import { SourceMaps } from "../stack-traces/source-maps.ts";
import { tails } from "../tail/capability.ts";
import { bindings } from "../capability.ts";
import { scriptHandlers } from "./edge-handler.ts";
import { Runtime } from "./runtime.ts";
import { declaration } from "./declaration.ts";

/** In edge processes: passes the requests for scripts to main, whose cells run them. */
const scriptsAtEdges = capability({
  name: "requests for scripts",
  processes: "edge",
  needs: [storage, edgeServer, toMain],
  create: ({ config, storage: database }) => ({
    routedRequests: new RoutedRequests(database, config.workersDomain),
  }),
  edgeHandlers: (services) => [
    {
      place: "scripts",
      ...services.toMain.when((edgeRequest) => services.routedRequests.concerns(edgeRequest)),
    },
  ],
  load: ({ routedRequests }) => routedRequests.load(),
});

/** Runs scripts: for visitors, for other scripts, and for events. */
export const runtime = capability({
  name: "runtime",
  declares: declaration,
  atEdges: scriptsAtEdges,
  needs: [sandbox, bindings, outbound, edgeServer, assets, scripts, tails],
  create({ config, logger, edgeSettings, customerCells, ...needed }) {
    const { scripts: stored, namespaces, tails: watched } = needed;
    const sourceMaps = new SourceMaps(async (id) => stored.sourceMaps(id));
    const created = new Runtime({
      scripts: stored,
      namespaces,
      cells: { own: needed.cells, customers: customerCells },
      subrequests: needed.subrequests,
      outbound: needed.outbound,
      assets: needed.assetServer,
      tails: watched,
      sourceMaps,
      bindings: needed.bindings,
      generation: () =>
        `${stored.revision}.${namespaces.revision}.${watched.revision}.${customerCells.quarantineRevision}`,
      logger,
      limits: {
        cpuMs: config.scriptCpuMs,
        subRequests: config.scriptSubrequestsMax,
        treeSubRequests: Math.max(config.requestSubrequestsMax, config.scriptSubrequestsMax),
        treeRunningMax: config.requestScriptsMax,
        memoryBytes: config.scriptMemoryMegabytes * mebibyte,
        eventMs: config.scriptEventSeconds * 1000,
        bodyBytesMax: edgeSettings.bodyBytesMax,
        idleTimeoutMs: edgeSettings.idleTimeoutMs,
        cacheBytes: config.scriptCacheMegabytes * mebibyte,
      },
    });
    return { runtime: created, sourceMaps };
  },
  edgeHandlers: (services) => [
    {
      place: "scripts",
      ...scriptHandlers(services.scriptRouter, services.runtime, services.logger, services.isAuthor),
    },
  ],
  metrics: async (services) => (await import("./metrics.ts")).runtimeMetrics(services.runtime.counts),
  reset: (services) => services.runtime.reset(),
  close: ({ sourceMaps }) => sourceMaps.close(),
});
