import { capability } from "../capability.ts";
import { mebibyte } from "../platform/bytes.ts";
import { processes } from "../platform/capability-processes.ts";
import { sandbox } from "../sandbox/capability.ts";
import { answerEdgeProcesses } from "./bindings-in-main.ts";
import { BindingRegistry } from "./binding-registry.ts";
import { Startup } from "./startup.ts";

/** The types of bindings of all capabilities. */
export const bindings = capability({
  name: "bindings",
  processes: "all",
  needs: [processes],
  create: () => ({ bindings: new BindingRegistry() }),
  load({ own, calls, ...services }, contributions) {
    services.bindings.set(contributions.bindings);
    if (own.role === "main") answerEdgeProcesses(calls!, services.bindings);
  },
});

/** Trial starts of new versions. */
export const startup = capability({
  name: "startup",
  processes: "all",
  needs: [sandbox, bindings],
  create: ({ config, cells, uploadCells, ...needed }) => ({
    startup: new Startup(
      { own: cells, customers: uploadCells },
      config.scriptMemoryMegabytes * mebibyte,
      needed.bindings,
    ),
  }),
});
