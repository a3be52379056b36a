import { capability } from "../../../capability.ts";
import { scripts } from "../../scripts/capability.ts";
import { assetOperations } from "./api.ts";
import { assetsBinding } from "./binding.ts";
import { assets } from "../capability.ts";

/** Uploads of assets for a script, and the script's access to them. */
export const assetUploads = capability({
  name: "asset uploads",
  needs: [assets, scripts],
  create: () => ({}),
  operations: assetOperations,
  idParameters: ["asset_hash"],
  bindings: ({ assetServer, versions }) => ({
    assets: {
      isolate: { module: "workers/assets/worker/binding.js", factory: "assets", className: "Fetcher" },
      handler: assetsBinding(assetServer, async (id) => versions.assetsOf(id)),
    },
  }),
});
