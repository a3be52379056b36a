import type { Selectable } from "kysely";
import type { ObjectNamespacesTable } from "./tables.ts";
import type { Read, Write } from "../../platform/storage/storage.ts";
import type { ObjectNamespace } from "./namespace.ts";

const toNamespace = (row: Selectable<ObjectNamespacesTable>): ObjectNamespace => ({
  id: row.id,
  accountId: row.account_id,
  scriptId: row.script_id,
  className: row.class_name,
  isSqlite: row.sqlite === 1,
  createdOn: row.created_on,
});

export async function loadAll(read: Read): Promise<ObjectNamespace[]> {
  return (await read.selectFrom("object_namespaces").selectAll().execute()).map(toNamespace);
}

export async function findById(read: Read, id: string): Promise<ObjectNamespace | undefined> {
  const row = await read.selectFrom("object_namespaces").selectAll().where("id", "=", id).executeTakeFirst();
  return row && toNamespace(row);
}

export async function ofScript(read: Read, scriptId: string): Promise<ObjectNamespace[]> {
  const rows = await read
    .selectFrom("object_namespaces")
    .selectAll()
    .where("script_id", "=", scriptId)
    .execute();
  return rows.map(toNamespace);
}

export async function put(trx: Write, namespace: ObjectNamespace): Promise<void> {
  const columns = { script_id: namespace.scriptId, class_name: namespace.className };
  await trx
    .insertInto("object_namespaces")
    .values({
      id: namespace.id,
      account_id: namespace.accountId,
      sqlite: namespace.isSqlite ? 1 : 0,
      created_on: namespace.createdOn,
      ...columns,
    })
    .onConflict((conflict) => conflict.column("id").doUpdateSet(columns))
    .execute();
}

export async function remove(trx: Write, id: string): Promise<void> {
  await trx.deleteFrom("object_namespaces").where("id", "=", id).execute();
}
