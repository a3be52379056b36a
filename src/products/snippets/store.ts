import type { Selectable } from "kysely";
import type { SnippetsTable } from "./tables.ts";
import type { Read, Write } from "../../platform/storage/storage.ts";
import type { Snippet, SnippetModule, SnippetSummary } from "./snippet.ts";

const toSummary = (
  row: Pick<Selectable<SnippetsTable>, "name" | "created_on" | "modified_on">,
): SnippetSummary => ({
  name: row.name,
  createdOn: row.created_on,
  modifiedOn: row.modified_on,
});

const toSnippet = (row: Selectable<SnippetsTable>): Snippet => ({
  ...toSummary(row),
  zoneId: row.zone_id,
  version: row.version,
  mainModule: row.main_module,
  modules: JSON.parse(row.modules) as SnippetModule[],
});

/** The snippets of a zone without their code, sorted by name. */
export async function list(read: Read, zoneId: string): Promise<SnippetSummary[]> {
  const rows = await read
    .selectFrom("snippets")
    .select(["name", "created_on", "modified_on"])
    .where("zone_id", "=", zoneId)
    .orderBy("name")
    .execute();
  return rows.map(toSummary);
}

export async function find(read: Read, zoneId: string, name: string): Promise<Snippet | undefined> {
  const [snippet] = await findSome(read, zoneId, [name]);
  return snippet;
}

export async function findSome(read: Read, zoneId: string, names: readonly string[]): Promise<Snippet[]> {
  if (names.length === 0) return [];
  const rows = await read
    .selectFrom("snippets")
    .selectAll()
    .where("zone_id", "=", zoneId)
    .where("name", "in", names)
    .execute();
  return rows.map(toSnippet);
}

export async function put(trx: Write, snippet: Snippet): Promise<void> {
  const columns = {
    version: snippet.version,
    main_module: snippet.mainModule,
    modules: JSON.stringify(snippet.modules),
    modified_on: snippet.modifiedOn,
  };
  await trx
    .insertInto("snippets")
    .values({ zone_id: snippet.zoneId, name: snippet.name, created_on: snippet.createdOn, ...columns })
    .onConflict((conflict) => conflict.columns(["zone_id", "name"]).doUpdateSet(columns))
    .execute();
}

export async function remove(trx: Write, zoneId: string, name: string): Promise<boolean> {
  const { numDeletedRows } = await trx
    .deleteFrom("snippets")
    .where("zone_id", "=", zoneId)
    .where("name", "=", name)
    .executeTakeFirst();
  return numDeletedRows > 0n;
}
