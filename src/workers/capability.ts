import { capability } from "../capability.ts";
import { mebibyte } from "../platform/bytes.ts";
import { sandbox } from "../sandbox/capability.ts";
import { BindingRegistry } from "./binding-registry.ts";
import { Startup } from "./startup.ts";

/** The types of bindings of all capabilities. */
export const bindings = capability({
  name: "bindings",
  needs: [],
  create: () => ({ bindings: new BindingRegistry() }),
  load: (services, contributions) => services.bindings.set(contributions.bindings),
});

/** Trial starts of new versions. */
export const startup = capability({
  name: "startup",
  needs: [sandbox, bindings],
  create: ({ config, cells, uploadCells, ...needed }) => ({
    startup: new Startup(
      { own: cells, customers: uploadCells },
      config.scriptMemoryMegabytes * mebibyte,
      needed.bindings,
    ),
  }),
});
