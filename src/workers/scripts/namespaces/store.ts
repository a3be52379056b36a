import type { Selectable } from "kysely";
import type { DispatchNamespacesTable } from "../tables.ts";
import type { Read, Write } from "../../../platform/storage/storage.ts";
import type { DispatchNamespace } from "./namespaces.ts";

const toNamespace = (row: Selectable<DispatchNamespacesTable>): DispatchNamespace => ({
  id: row.id,
  accountId: row.account_id,
  name: row.name,
  isTrusted: row.trusted === 1,
  createdOn: row.created_on,
  createdBy: row.created_by,
  modifiedOn: row.modified_on,
  modifiedBy: row.modified_by,
});

export async function loadAll(read: Read): Promise<DispatchNamespace[]> {
  return (await read.selectFrom("dispatch_namespaces").selectAll().orderBy("name").execute()).map(
    toNamespace,
  );
}

export async function put(trx: Write, namespace: DispatchNamespace): Promise<void> {
  const columns = {
    name: namespace.name,
    trusted: namespace.isTrusted ? (1 as const) : (0 as const),
    modified_on: namespace.modifiedOn,
    modified_by: namespace.modifiedBy,
  };
  await trx
    .insertInto("dispatch_namespaces")
    .values({
      id: namespace.id,
      account_id: namespace.accountId,
      created_on: namespace.createdOn,
      created_by: namespace.createdBy,
      ...columns,
    })
    .onConflict((conflict) => conflict.column("id").doUpdateSet(columns))
    .execute();
}

export async function remove(trx: Write, id: string): Promise<void> {
  await trx.deleteFrom("dispatch_namespaces").where("id", "=", id).execute();
}
