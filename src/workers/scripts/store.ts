import type { Selectable } from "kysely";
import type { ScriptsTable } from "./tables.ts";
import type { Read, Write } from "../../platform/storage/storage.ts";
import type { Script, ScriptSettings, VersionShare } from "./script.ts";

const toScript = (row: Selectable<ScriptsTable>): Script => ({
  id: row.id,
  accountId: row.account_id,
  namespaceId: row.namespace_id,
  ownerId: row.owner_id,
  name: row.name,
  tags: JSON.parse(row.tags) as string[],
  settings: JSON.parse(row.settings) as ScriptSettings,
  live: JSON.parse(row.live_versions) as VersionShare[],
  versionCount: row.version_count,
  subdomainEnabled: row.subdomain_enabled === 1,
  previewsEnabled: row.previews_enabled === 1,
  migrationTag: row.migration_tag,
  createdOn: row.created_on,
  modifiedOn: row.modified_on,
});

export async function loadAll(read: Read): Promise<Script[]> {
  return (await read.selectFrom("scripts").selectAll().execute()).map(toScript);
}

export async function findById(read: Read, id: string): Promise<Script | undefined> {
  const row = await read.selectFrom("scripts").selectAll().where("id", "=", id).executeTakeFirst();
  return row && toScript(row);
}

/** Reads a script and locks it for the transaction. SQLite runs one write transaction at a time and needs no lock. */
export async function lock(
  trx: Write,
  engine: "sqlite" | "postgres",
  owner: string,
  name: string,
): Promise<Script | undefined> {
  const query = trx.selectFrom("scripts").selectAll().where("owner_id", "=", owner).where("name", "=", name);
  const row = await (engine === "sqlite" ? query : query.forUpdate()).executeTakeFirst();
  return row && toScript(row);
}

export async function put(trx: Write, script: Script): Promise<void> {
  const columns = {
    tags: JSON.stringify(script.tags),
    settings: JSON.stringify(script.settings),
    live_versions: JSON.stringify(script.live),
    version_count: script.versionCount,
    subdomain_enabled: script.subdomainEnabled ? (1 as const) : (0 as const),
    previews_enabled: script.previewsEnabled ? (1 as const) : (0 as const),
    migration_tag: script.migrationTag,
    modified_on: script.modifiedOn,
  };
  await trx
    .insertInto("scripts")
    .values({
      id: script.id,
      account_id: script.accountId,
      namespace_id: script.namespaceId,
      owner_id: script.ownerId,
      name: script.name,
      created_on: script.createdOn,
      ...columns,
    })
    .onConflict((conflict) => conflict.column("id").doUpdateSet(columns))
    .execute();
}

export async function remove(trx: Write, id: string): Promise<void> {
  await trx.deleteFrom("scripts").where("id", "=", id).execute();
}
