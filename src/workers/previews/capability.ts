import { capability } from "../../capability.ts";
import { clientInfo } from "../../edge/client-info/capability.ts";
import { mebibyte } from "../../platform/bytes.ts";
import { sandbox } from "../../sandbox/capability.ts";
import { bindings } from "../capability.ts";
import { runtime } from "../runtime/capability.ts";
import { scripts } from "../scripts/capability.ts";
import { previewErrorCodes } from "./api-errors.ts";
import { previewErrors } from "./errors.ts";
import { Previews } from "./previews.ts";

/** Runs of code that is not deployed, for its author. */
export const previews = capability({
  name: "previews",
  needs: [sandbox, bindings, scripts, runtime, clientInfo],
  create: ({ config, singleUseCells }) => ({
    previews: new Previews(singleUseCells),
    previewOptions: {
      colo: config.colo,
      limits: {
        cpuMs: config.scriptCpuMs,
        subRequests: config.scriptSubrequestsMax,
        memoryBytes: config.scriptMemoryMegabytes * mebibyte,
      },
    },
  }),
  operations: async () => (await import("./api.ts")).previewOperations,
  errors: [{ title: "Previews of scripts", errors: previewErrors, codes: previewErrorCodes }],
  run:
    ({ previews: running }) =>
    async () =>
      running.stop(),
});
