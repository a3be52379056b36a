import { declare, table } from "../declaration.ts";
import { backupSettings } from "./config/settings-backup.ts";
import { nodeSettings } from "./config/settings-node.ts";
import type {
  MetaTable,
  ChangesTable,
  ChangeHeadTable,
  NodesTable,
  NodeRatesTable,
  NodeValuesTable,
  ObjectNodesTable,
  ObjectShardsTable,
  ObjectLogTable,
  ObjectLogHeadTable,
  BlobPlaceTable,
  BlobsTable,
  BlobChunksTable,
} from "./storage/tables.ts";

const anyHost = /^(0\.0\.0\.0|\[[0:]*\])?:/;

/** A node with its storage and its backups. */
export const declaration = declare({
  settings: { ...nodeSettings, ...backupSettings },
  checkSettings: ({ edgeProcesses, ephemeral, nodeListen, databaseUrl }) => {
    if (ephemeral && edgeProcesses > 0)
      return "Expected --edge-processes 0 with --ephemeral, because the processes share a database";
    if (nodeListen === undefined) return undefined;
    if (databaseUrl === undefined)
      return "Expected no --node-listen without --database-url: only nodes that share PostgreSQL reach each other";
    return anyHost.test(nodeListen)
      ? "Expected an address that other nodes can reach for --node-listen, not one of all interfaces"
      : undefined;
  },
  tables: {
    meta: table<MetaTable>(),
    changes: table<ChangesTable>(),
    change_head: table<ChangeHeadTable>(),
    nodes: table<NodesTable>(),
    node_rates: table<NodeRatesTable>(),
    node_values: table<NodeValuesTable>(),
    object_nodes: table<ObjectNodesTable>(),
    object_shards: table<ObjectShardsTable>(),
    object_log: table<ObjectLogTable>(),
    object_log_head: table<ObjectLogHeadTable>(),
    blob_place: table<BlobPlaceTable>(),
    blobs: table<BlobsTable>(),
    blob_chunks: table<BlobChunksTable>(),
  },
  migrations: {
    "0001-initial": async () => (await import("./storage/migrations/0001-initial.ts")).initial,
    "0002-snippets": async () => (await import("./storage/migrations/0002-snippets.ts")).snippets,
    "0003-scripts": async () => (await import("./storage/migrations/0003-scripts.ts")).scripts,
    "0006-assets-queues": async () =>
      (await import("./storage/migrations/0006-assets-queues.ts")).assetsQueues,
    "0007-dnssec": async () => (await import("./storage/migrations/0007-dnssec.ts")).dnssec,
    "0008-tls": async () => (await import("./storage/migrations/0008-tls.ts")).tls,
    "0009-unused-blobs": async () => (await import("./storage/migrations/0009-unused-blobs.ts")).unusedBlobs,
    "0015-schema-info": async () => (await import("./storage/migrations/0015-schema-info.ts")).schemaInfo,
    "0016-blobs": async () => (await import("./storage/migrations/0016-blobs.ts")).blobs,
    "0017-change-head": async () => (await import("./storage/migrations/0017-change-head.ts")).changeHead,
    "0018-nodes": async () => (await import("./storage/migrations/0018-nodes.ts")).nodes,
    "0031-object-shards": async () =>
      (await import("./storage/migrations/0031-object-shards.ts")).objectShards,
    "0033-object-log-marks": async () =>
      (await import("./storage/migrations/0033-object-log-marks.ts")).objectLogMarks,
  },
});
