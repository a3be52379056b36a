import { binding, declare } from "../../../declaration.ts";
import type { assetsType } from "./binding.ts";

/** Uploads of static assets. */
export const declaration = declare({
  bindings: {
    assets: binding<typeof assetsType>(),
  },
});
