import { existsSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import type { Command } from "commander";
import { Kysely } from "kysely";
import { nodeResource } from "../control/nodes/resource.ts";
import { ConfigError } from "../platform/config/config.ts";
import { databaseUrl } from "../platform/config/derived.ts";
import type { Config } from "../platform/config/settings.ts";
import { FolderOwner } from "../platform/storage/folder-owner.ts";
import { stateOf, type ListedNode } from "../platform/storage/nodes/node-registry.ts";
import { list } from "../platform/storage/nodes/node-store.ts";
import type { Database } from "../platform/storage/schema.ts";
import { sqliteDialect } from "../platform/storage/sqlite.ts";
import { addConfigOptions, configOf } from "./config-options.ts";
import { print } from "./output.ts";

const timeoutMs = 10_000;

/** `nodes`: the table of nodes in the database of this configuration. */
export function registerNodesCommand(program: Command): void {
  const nodes = program
    .command("nodes")
    .description("list the nodes that use the database of this configuration, and their states");
  addConfigOptions(nodes)
    .option("--json", "print JSON")
    .action(async (options: Record<string, unknown>) => {
      const found = await nodesOf(configOf(options).config);
      const output =
        options["json"] === true ? JSON.stringify(found.map(nodeResource), null, 2) : table(found);
      print(output);
    });
}

/** Reads the table and changes nothing, not even the schema. */
export async function nodesOf(config: Config): Promise<ListedNode[]> {
  if (config.ephemeral && config.databaseUrl === undefined)
    throw new ConfigError("The nodes of --ephemeral are in its memory: ask its management API");
  const url = databaseUrl(config);
  if (url.startsWith("sqlite:")) {
    const file = url.slice("sqlite:".length);
    if (!existsSync(file)) throw new ConfigError(`Expected a database at ${file}, but there is none`);
    const dialect = sqliteDialect(new DatabaseSync(file, { readOnly: true }));
    const isLocked = FolderOwner.find(config.dataDir) !== undefined;
    const found = await listed(new Kysely<Database>({ dialect }), "sqlite");
    // The file has one owner at a time: the node that started last.
    const last = found.toSorted((a, b) => b.startedOn - a.startedOn)[0];
    return found.map((node) => ({
      ...node,
      state: stateOf({ ...node, isAlive: false }, isLocked && node === last),
    }));
  }
  const { postgresDialect } = await import("../platform/storage/postgres.ts");
  return listed(new Kysely<Database>({ dialect: postgresDialect(url, timeoutMs) }), "postgres");
}

async function listed(read: Kysely<Database>, engine: "sqlite" | "postgres"): Promise<ListedNode[]> {
  try {
    return (await list(read, engine)).map((node) => ({ ...node, state: stateOf(node, false) }));
  } catch (error) {
    if (!/no such table|does not exist/.test((error as Error).message)) throw error;
    throw new ConfigError("The database has no table of nodes yet: start a node of this version first");
  } finally {
    await read.destroy();
  }
}

const ago = (ms: number): string => {
  const seconds = Math.max(0, Math.round((Date.now() - ms) / 1000));
  if (seconds < 120) return `${seconds} s ago`;
  return seconds < 7200 ? `${Math.round(seconds / 60)} min ago` : `${Math.round(seconds / 3600)} h ago`;
};

function table(nodes: readonly ListedNode[]): string {
  const rows = [
    ["id", "name", "state", "version", "started", "seen", "change", "shards", "blobs"],
    ...nodes.map(({ id, name, state, version, startedOn, seenOn, seq, shards, blobs }) => [
      id,
      name,
      state,
      version,
      ago(startedOn),
      state === "running" ? "now" : ago(seenOn),
      String(seq ?? "–"),
      String(shards ?? "–"),
      blobs,
    ]),
  ];
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  return rows
    .map((row) =>
      row
        .map((text, i) => text.padEnd(widths[i]!))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}
