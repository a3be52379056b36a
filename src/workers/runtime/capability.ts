import { capability } from "../../capability.ts";
import { outbound } from "../../edge/origin/capability.ts";
import { edgeServer } from "../../edge/capability.ts";
import { toMain } from "../../edge/processes/capability.ts";
import { partOfNode } from "../../platform/processes/part-of-node.ts";
import { mebibyte } from "../../platform/bytes.ts";
import { sandbox } from "../../sandbox/capability.ts";
import { assets } from "../assets/capability.ts";
import { scripts } from "../scripts/capability.ts";
import { SourceMaps } from "../stack-traces/source-maps.ts";
import { tails } from "../tail/capability.ts";
import { bindings } from "../capability.ts";
import { scriptHandlers, scriptOfRequest } from "./edge-handler.ts";
import { Runtime } from "./runtime.ts";
import { declaration } from "./declaration.ts";

/**
 * In edge processes: passes requests of scripts for other scripts to main. So one process counts the limits of all
 * scripts that one request causes, from the second script on.
 */
export const scriptsForScripts = capability({
  name: "requests of scripts for scripts",
  processes: "edge",
  needs: [scripts, edgeServer, toMain],
  create: () => ({}),
  edgeHandlers: (services) => [
    {
      phase: "snippets", // before snippets, which main runs, too
      ...services.toMain.when(
        (edgeRequest) =>
          edgeRequest.via !== undefined && scriptOfRequest(services.scriptRouter, edgeRequest) !== undefined,
      ),
    },
  ],
});

/** Runs scripts: for visitors, for other scripts, and for events. */
export const runtime = capability({
  name: "runtime",
  processes: "all",
  declares: declaration,
  needs: [sandbox, bindings, outbound, edgeServer, assets, scripts, tails],
  create({ config, logger, own, edgeSettings, customerCells, ...needed }) {
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
        cacheBytes: partOfNode(config.scriptCacheMegabytes * mebibyte, own, config),
      },
    });
    return { runtime: created, sourceMaps };
  },
  edgeHandlers: (services) => [
    {
      phase: "scripts",
      ...scriptHandlers(services.scriptRouter, services.runtime, services.logger, services.isAuthor),
    },
  ],
  metrics: async (services) => (await import("./metrics.ts")).runtimeMetrics(services.runtime.counts),
  reset: (services) => services.runtime.reset(),
  close: ({ sourceMaps }) => sourceMaps.close(),
});
