import { declare, table } from "../declaration.ts";
import { backupSettings } from "./config/settings-backup.ts";
import { nodeSettings } from "./config/settings-node.ts";
import type {
  MetaTable,
  ChangesTable,
  ChangeHeadTable,
  NodesTable,
  NodeRatesTable,
  BlobPlaceTable,
  BlobsTable,
  BlobChunksTable,
} from "./storage/tables.ts";

/** A node with its storage and its backups. */
export const declaration = declare({
  settings: { ...nodeSettings, ...backupSettings },
  checkSettings: ({ edgeProcesses, ephemeral }) =>
    ephemeral && edgeProcesses > 0
      ? "Expected --edge-processes 0 with --ephemeral, because the processes share a database"
      : undefined,
  tables: {
    meta: table<MetaTable>(),
    changes: table<ChangesTable>(),
    change_head: table<ChangeHeadTable>(),
    nodes: table<NodesTable>(),
    node_rates: table<NodeRatesTable>(),
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
  },
});
