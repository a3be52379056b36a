import { capability } from "../../capability.ts";
import { rulesets } from "../../control/rulesets/capability.ts";
import { zones } from "../../control/zones/capability.ts";
import { outbound } from "../../edge/origin/capability.ts";
import { edgeServer } from "../../edge/capability.ts";
import { mebibyte } from "../../platform/bytes.ts";
import { storage } from "../../platform/capability.ts";
import { sandbox } from "../../sandbox/capability.ts";
import { runtime } from "../../workers/runtime/capability.ts";
import { images } from "../images/capability.ts";
import { snippetOperations } from "./api.ts";
import { snippetHandler } from "./chain.ts";
import { Snippets } from "./snippets.ts";
import { declaration } from "./declaration.ts";
import { snippetErrors } from "./errors.ts";
import { snippetErrorCodes } from "./api-errors.ts";

export const snippets = capability({
  name: "snippets",
  declares: declaration,
  needs: [storage, zones, rulesets, sandbox, outbound, edgeServer, runtime, images],
  create(needed) {
    const created = new Snippets(needed.storage, needed.rulesets);
    needed.zones.onChange((id, zone) => {
      if (zone === undefined) created.forget(id);
    });
    return { snippets: created };
  },
  operations: snippetOperations,
  errors: [{ title: "Snippets", errors: snippetErrors, codes: snippetErrorCodes }],
  edgeHandlers: (services) => [
    {
      place: "snippets",
      handler: snippetHandler({
        snippets: services.snippets,
        cells: services.cells,
        subrequests: services.subrequests,
        outbound: services.outbound,
        transformations: services.images.transformations,
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
  load: (services) => services.snippets.load(),
});
