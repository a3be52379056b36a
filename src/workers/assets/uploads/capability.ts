import { capability } from "../../../capability.ts";
import { scripts } from "../../scripts/capability.ts";
import { together } from "../../../control/api/together.ts";
import { assetsBinding, assetsType } from "./binding.ts";
import { assets } from "../capability.ts";
import { declaration } from "./declaration.ts";
import { assetErrors } from "../errors.ts";
import { assetErrorCodes } from "./api-errors.ts";

/** Uploads of assets for a script, and the script's access to them. */
export const assetUploads = capability({
  name: "asset uploads",
  processes: "all",
  declares: declaration,
  needs: [assets, scripts],
  create: () => ({}),
  async operations() {
    const { assetOperations } = await import("./api.ts");
    const { assetListOperations } = await import("./api-list.ts");
    return together([...assetOperations, ...assetListOperations]);
  },
  errors: [{ title: "Static assets", errors: assetErrors, codes: assetErrorCodes }],
  idParameters: ["asset_hash"],
  bindings: ({ assetServer, versions }) => ({
    assets: {
      type: assetsType,
      isolate: { module: "workers/assets/worker/binding.js", factory: "assets", className: "Fetcher" },
      handler: assetsBinding(assetServer, async (id) => versions.assetsOf(id)),
    },
  }),
});
