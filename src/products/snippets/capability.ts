import { capability } from "../../capability.ts";
import { rulesets } from "../../control/rulesets/capability.ts";
import { zones } from "../../control/zones/capability.ts";
import { outbound } from "../../edge/origin/capability.ts";
import { edgeServer } from "../../edge/capability.ts";
import { mebibyte } from "../../platform/bytes.ts";
import { storage } from "../../platform/capability.ts";
import { sandbox } from "../../sandbox/capability.ts";
import { runtime } from "../../workers/runtime/capability.ts";
import { snippetHandler } from "./chain.ts";
import { toMain } from "../../edge/processes/capability.ts";
import type { Concerns } from "../../edge/processes/to-main.ts";
import { selectsSnippet } from "./selects-snippet.ts";
import { Snippets } from "./snippets.ts";
import { declaration } from "./declaration.ts";
import { snippetErrors } from "./errors.ts";
import { snippetErrorCodes } from "./api-errors.ts";

/** The snippets of zones and their rules. */
export const snippetRules = capability({
  name: "snippet rules",
  processes: "all",
  needs: [storage, zones, rulesets],
  create(needed) {
    const created = new Snippets(needed.storage, needed.rulesets);
    needed.zones.onChange((id, zone) => {
      if (zone === undefined) created.forget(id);
    });
    return { snippets: created };
  },
  load: (services) => services.snippets.load(),
});

/** In edge processes: if a snippet applies to a request that a script sends, passes it on to the main process. */
export const snippetsForScripts = capability({
  name: "requests of scripts for snippets",
  processes: "edge",
  needs: [snippetRules, edgeServer, toMain],
  create: () => ({}),
  edgeHandlers(services) {
    const selects = selectsSnippet(services.snippets);
    const concerns: Concerns = (edgeRequest) => edgeRequest.via !== undefined && selects(edgeRequest);
    return [{ phase: "snippets", handler: services.toMain.when(concerns).handler }];
  },
});

export const snippets = capability({
  name: "snippets",
  processes: "all",
  declares: declaration,
  needs: [snippetRules, sandbox, outbound, edgeServer, runtime],
  create: () => ({}),
  operations: async () => (await import("./api.ts")).snippetOperations,
  errors: [{ title: "Snippets", errors: snippetErrors, codes: snippetErrorCodes }],
  edgeHandlers: (services) => [
    {
      phase: "snippets",
      handler: snippetHandler({
        snippets: services.snippets,
        cells: services.cells,
        subrequests: services.subrequests,
        outbound: services.outbound,
        answerImageFetch: async (...fetched) => services.runtime.answerImageFetch(...fetched),
        limits: {
          cpuMs: services.config.snippetCpuMs,
          memoryBytes: services.config.snippetMemoryMegabytes * mebibyte,
          bodyBytesMax: services.edgeSettings.bodyBytesMax,
          treeSubRequests: services.runtime.treeSubRequests,
        },
        isAuthor: services.isAuthor,
        logger: services.logger,
      }),
    },
  ],
});
