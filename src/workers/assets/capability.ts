import { capability } from "../../capability.ts";
import { tokens } from "../../control/tokens/capability.ts";
import { mebibyte } from "../../platform/bytes.ts";
import { blobs, storage } from "../../platform/capability.ts";
import { partOfNode } from "../../platform/processes/part-of-node.ts";
import { AssetServer } from "./asset-server.ts";
import { Assets } from "./assets.ts";
import { AssetCollector } from "./collector.ts";
import { declaration } from "./declaration.ts";

const hourMs = 3_600_000;

/** Static assets of scripts. The operations need scripts and are in `assetUploads`. */
export const assets = capability({
  name: "assets",
  processes: "all",
  declares: declaration,
  needs: [storage, blobs, tokens],
  create({ config, own, ...needed }) {
    const stored = new Assets(needed.storage, needed.blobs, needed.tokens.hash("asset upload tokens"));
    const server = new AssetServer(stored, needed.blobs, {
      cacheBytes: partOfNode(config.assetCacheMegabytes * mebibyte, own, config),
    });
    return { assets: stored, assetServer: server };
  },
  run({ config, logger, ...services }) {
    const retentionMs = config.assetRetentionHours * hourMs;
    return new AssetCollector(services.storage, services.blobs, { retentionMs }).start(logger);
  },
});
