import type { Selectable } from "kysely";
import type { KvNamespacesTable } from "./tables.ts";
import { prepared } from "../../platform/storage/prepared.ts";
import type { Read, Write } from "../../platform/storage/storage.ts";
import type { KvNamespace } from "./kv.ts";
import { clock } from "../../platform/timers/clock.ts";

const toNamespace = (row: Selectable<KvNamespacesTable>): KvNamespace => ({
  id: row.id,
  accountId: row.account_id,
  title: row.title,
  createdOn: row.created_on,
});

export async function findNamespace(read: Read, id: string): Promise<KvNamespace | undefined> {
  const row = await read.selectFrom("kv_namespaces").selectAll().where("id", "=", id).executeTakeFirst();
  return row && toNamespace(row);
}

export async function listNamespaces(read: Read, accountId: string): Promise<KvNamespace[]> {
  const rows = await read
    .selectFrom("kv_namespaces")
    .selectAll()
    .where("account_id", "=", accountId)
    .execute();
  return rows.map(toNamespace);
}

export async function putNamespace(trx: Write, namespace: KvNamespace): Promise<void> {
  await trx
    .insertInto("kv_namespaces")
    .values({
      id: namespace.id,
      account_id: namespace.accountId,
      title: namespace.title,
      created_on: namespace.createdOn,
    })
    .onConflict((conflict) => conflict.column("id").doUpdateSet({ title: namespace.title }))
    .execute();
}

/** Removes a namespace with its remaining entries. */
export async function removeNamespace(trx: Write, id: string): Promise<void> {
  await trx.deleteFrom("kv_namespaces").where("id", "=", id).execute();
}

/** Removes some entries of a namespace; returns their count and the blobs that became unreferenced. */
export async function removeSome(trx: Write, namespaceId: string, limit: number): Promise<Removed> {
  const rows = await trx
    .selectFrom("kv_entries")
    .select(["key", "blob_key"])
    .where("namespace_id", "=", namespaceId)
    .limit(limit)
    .execute();
  if (rows.length > 0)
    await trx
      .deleteFrom("kv_entries")
      .where("namespace_id", "=", namespaceId)
      .where(
        "key",
        "in",
        rows.map(({ key }) => key),
      )
      .execute();
  return { count: rows.length, blobs: rows.flatMap(({ blob_key }) => blob_key ?? []) };
}

export interface Removed {
  count: number;
  blobs: string[];
}

export interface StoredEntry {
  key: Uint8Array;
  /** Null when the value is in a blob. */
  value: Uint8Array | null;
  blobKey: string | null;
  metadata: string | null;
  /** Epoch milliseconds. */
  expiresOn: number | null;
}

const findRow = prepared(
  (db, { namespaceId, key, now }: { namespaceId: string; key: Uint8Array; now: number }) =>
    db
      .selectFrom("kv_entries")
      .select(["value", "blob_key", "metadata", "expires_on"])
      .where("namespace_id", "=", namespaceId)
      .where("key", "=", key)
      .where((eb) => eb.or([eb("expires_on", "is", null), eb("expires_on", ">", now)])),
);

export async function find(
  read: Read,
  namespaceId: string,
  key: Uint8Array,
): Promise<StoredEntry | undefined> {
  const [row] = await findRow(read, { namespaceId, key, now: clock.now() });
  if (row === undefined) return undefined;
  return { key, value: row.value, blobKey: row.blob_key, metadata: row.metadata, expiresOn: row.expires_on };
}

const blobOf = prepared((db, { namespaceId, key }: { namespaceId: string; key: Uint8Array }) =>
  db
    .selectFrom("kv_entries")
    .select("blob_key")
    .where("namespace_id", "=", namespaceId)
    .where("key", "=", key)
    .where("blob_key", "is not", null),
);

const putRow = prepared((db, entry: { namespaceId: string } & StoredEntry) =>
  db
    .insertInto("kv_entries")
    .values({
      namespace_id: entry.namespaceId,
      key: entry.key,
      value: entry.value,
      blob_key: entry.blobKey,
      metadata: entry.metadata,
      expires_on: entry.expiresOn,
    })
    .onConflict((conflict) =>
      conflict.columns(["namespace_id", "key"]).doUpdateSet((eb) => ({
        value: eb.ref("excluded.value"),
        blob_key: eb.ref("excluded.blob_key"),
        metadata: eb.ref("excluded.metadata"),
        expires_on: eb.ref("excluded.expires_on"),
      })),
    ),
);

/** Writes an entry; returns the blob of the replaced entry. */
export async function put(trx: Write, namespaceId: string, entry: StoredEntry): Promise<string[]> {
  const replaced = await blobOf(trx, { namespaceId, key: entry.key });
  await putRow(trx, { namespaceId, ...entry });
  return replaced.map(({ blob_key }) => blob_key!);
}

/** Removes entries, if they exist; returns the blobs that became unreferenced. */
export async function remove(
  trx: Write,
  namespaceId: string,
  keys: readonly Uint8Array[],
): Promise<string[]> {
  const blobs = await blobsOf(trx, namespaceId, keys);
  await trx
    .deleteFrom("kv_entries")
    .where("namespace_id", "=", namespaceId)
    .where("key", "in", keys)
    .execute();
  return blobs;
}

async function blobsOf(trx: Write, namespaceId: string, keys: readonly Uint8Array[]): Promise<string[]> {
  const rows = await trx
    .selectFrom("kv_entries")
    .select("blob_key")
    .where("namespace_id", "=", namespaceId)
    .where("key", "in", keys)
    .where("blob_key", "is not", null)
    .execute();
  return rows.map(({ blob_key }) => blob_key!);
}

/** Returns those of the blobs that are referenced. */
export async function namedBlobs(read: Read, keys: readonly string[]): Promise<Set<string>> {
  const rows = await read
    .selectFrom("kv_entries")
    .select("blob_key")
    .where("blob_key", "in", keys)
    .where("blob_key", "is not", null)
    .execute();
  return new Set(rows.map(({ blob_key }) => blob_key!));
}

/** Entries without values, in key order: optionally those with a prefix, and those after a key. */
export async function list(
  read: Read,
  namespaceId: string,
  options: { prefix: Uint8Array; after: Uint8Array | undefined; limit: number },
): Promise<Omit<StoredEntry, "value" | "blobKey">[]> {
  const end = endOfPrefix(options.prefix);
  const rows = await read
    .selectFrom("kv_entries")
    .select(["key", "metadata", "expires_on"])
    .where("namespace_id", "=", namespaceId)
    .where((eb) => eb.or([eb("expires_on", "is", null), eb("expires_on", ">", clock.now())]))
    .$if(options.prefix.length > 0, (query) => query.where("key", ">=", options.prefix))
    .$if(end !== undefined, (query) => query.where("key", "<", end!))
    .$if(options.after !== undefined, (query) => query.where("key", ">", options.after!))
    .orderBy("key")
    .limit(options.limit)
    .execute();
  return rows.map(({ key, metadata, expires_on }) => ({ key, metadata, expiresOn: expires_on }));
}

/** The first key after all keys with a prefix; undefined when there is none. */
function endOfPrefix(prefix: Uint8Array): Uint8Array | undefined {
  const last = prefix.findLastIndex((byte) => byte < 0xff);
  if (last < 0) return undefined;
  const end = Uint8Array.from(prefix.subarray(0, last + 1));
  end[last]! += 1;
  return end;
}

/** Removes some expired entries; returns their count and the blobs that became unreferenced. */
export async function removeExpired(trx: Write, limit: number): Promise<Removed> {
  const rows = await trx
    .selectFrom("kv_entries")
    .select(["namespace_id", "key", "blob_key"])
    .where("expires_on", "<=", clock.now())
    .orderBy("expires_on")
    .limit(limit)
    .execute();
  for (const { namespace_id, key } of rows)
    await trx
      .deleteFrom("kv_entries")
      .where("namespace_id", "=", namespace_id)
      .where("key", "=", key)
      .execute();
  return { count: rows.length, blobs: rows.flatMap(({ blob_key }) => blob_key ?? []) };
}
