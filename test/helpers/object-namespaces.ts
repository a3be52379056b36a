import type { Storage } from "../../src/platform/storage/storage.ts";
import { newId } from "../../src/platform/util/ids.ts";
import { put } from "../../src/workers/objects/store.ts";

/** Adds namespaces of objects of a new account. They have no script. */
export async function addObjectNamespaces(storage: Storage, ids: readonly string[]): Promise<void> {
  const accountId = newId();
  await storage.write(async (trx) => {
    await trx
      .insertInto("accounts")
      .values({ id: accountId, name: "A", type: "standard", settings: "{}", has_billing: 0, created_on: 0 })
      .execute();
    for (const id of ids)
      await put(trx, { id, accountId, scriptId: null, className: id, isSqlite: true, createdOn: 0 });
  });
}
