import { declare, table } from "../../declaration.ts";
import type { AssetFilesTable, AssetManifestsTable } from "./tables.ts";

/** Static assets. */
export const declaration = declare({
  settings: {
    assetCacheMegabytes: {
      kind: "count",
      min: 32,
      max: 1_000_000,
      flag: "asset-cache-megabytes",
      env: "SELVEDGE_ASSET_CACHE_MEGABYTES",
      default: 64,
      describe: "memory for frequently requested static assets, plain and compressed",
    },
    assetRetentionHours: {
      kind: "count",
      min: 3, // an upload and its completion take at most two hours
      max: 100_000,
      flag: "asset-retention-hours",
      env: "SELVEDGE_ASSET_RETENTION_HOURS",
      default: 24,
      describe: "hours for which unused static assets are kept",
    },
  },
  tables: {
    asset_files: table<AssetFilesTable>(),
    asset_manifests: table<AssetManifestsTable>(),
  },
});
