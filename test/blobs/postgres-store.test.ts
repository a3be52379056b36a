import { randomBytes } from "node:crypto";
import { buffer } from "node:stream/consumers";
import { afterAll, beforeAll, expect, it } from "vitest";
import { contentOf } from "../../src/platform/storage/blobs/content.ts";
import { PostgresStore } from "../../src/platform/storage/blobs/postgres-store.ts";
import { BlobTooLarge } from "../../src/platform/storage/faults.ts";
import { openStorage, type Storage } from "../../src/platform/storage/storage.ts";
import { startPostgres, type TestPostgres } from "../helpers/postgres.ts";
import { startTestServer } from "../helpers/server.ts";

let postgres: TestPostgres;
let storage: Storage;
let store: PostgresStore;
beforeAll(async () => {
  postgres = await startPostgres();
  storage = await openStorage(await postgres.createMigrated());
  store = new PostgresStore(storage);
});
afterAll(async () => {
  await storage.close();
  await postgres.stop();
});

const keys = async (prefix: string): Promise<string[]> =>
  (await Array.fromAsync(store.list(prefix))).map(({ key }) => key);

it("puts, gets, lists and deletes content of any number of chunks", async () => {
  for (const length of [0, 1, 262_144, 262_145, 1_000_000]) {
    const bytes = randomBytes(length);
    await store.put("k", contentOf(bytes));
    await store.put("k", contentOf(bytes)); // a repetition replaces it
    const found = await store.get("k");
    expect(found).toMatchObject({ sizeBytes: length, sha256: contentOf(bytes).sha256 });
    expect((await buffer(found!.stream)).equals(bytes)).toBe(true);
  }
  await store.delete("k");
  await store.delete("k");
  expect([await store.get("k"), await store.head("k")]).toEqual([undefined, undefined]);
  const { count } = await storage.read
    .selectFrom("blob_chunks")
    .select((eb) => eb.fn.countAll<number>().as("count"))
    .executeTakeFirstOrThrow();
  expect(count).toBe(0);
});

it("lists keys and folders below a prefix only", async () => {
  for (const key of ["a/1", "a/b/2", "a/b/3", "a%/4", "ab/5", "a_/6"])
    await store.put(key, contentOf(Buffer.from(key)));
  expect(await keys("a/")).toEqual(["a/1", "a/b/2", "a/b/3"]);
  expect(await keys("a_/")).toEqual(["a_/6"]);
  expect(await keys("")).toHaveLength(6);
  expect(await store.folders("a/")).toEqual(["b"]);
});

it("refuses content above 25 MiB, and tells callers the limit", async () => {
  const content = { ...contentOf(Buffer.alloc(1)), sizeBytes: 25 * 1024 * 1024 + 1 };
  await expect(store.put("k", content)).rejects.toBeInstanceOf(BlobTooLarge);
});

it("nodes without folders of their own share a large value in the database", async () => {
  const databaseUrl = await postgres.createDatabase();
  const nodes = [await startTestServer({ databaseUrl }), await startTestServer({ databaseUrl })];
  const [first, second] = nodes.map(({ services }) => services.kv);
  const accountId = nodes[0]!.ready.account_id;
  const { id } = await first!.createNamespace(accountId, "shared");
  const value = randomBytes(1_000_000);
  await first!.put(id, "large", value);
  const { content } = (await second!.get(id, "large"))!;
  expect((await buffer(content as never)).equals(value)).toBe(true);
  for (const node of nodes) await node.close(1000);
});
