import { capability } from "../../capability.ts";
import { mebibyte } from "../../platform/bytes.ts";
import { sandbox } from "../../sandbox/capability.ts";
import { bindings } from "../bindings/capability.ts";
import { Startup } from "./startup.ts";

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
