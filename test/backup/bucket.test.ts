import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, vi } from "vitest";
import { FolderArchiveStore } from "../../src/platform/storage/archive/folder.ts";
import { S3ArchiveStore } from "../../src/platform/storage/archive/s3.ts";
import { backUp } from "../../src/platform/storage/backup/back-up.ts";
import type { Manifest } from "../../src/platform/storage/backup/manifest.ts";
import { tablesOf } from "../../src/platform/storage/backup/model.ts";
import { openSource } from "../../src/platform/storage/backup/open-source.ts";
import { restore } from "../../src/platform/storage/backup/restore.ts";
import { verify } from "../../src/platform/storage/backup/verify.ts";
import { FileBlobs } from "../../src/platform/storage/blobs.ts";
import { S3Store } from "../../src/platform/storage/blobs/s3-store.ts";
import { currentSchema } from "../../src/platform/storage/migrations/migrate.ts";
import { openStorage } from "../../src/platform/storage/storage.ts";
import { fillTables } from "../helpers/fill-tables.ts";
import { temporaryFolder } from "../helpers/process.ts";
import { s3Credentials, startS3, type S3Call, type S3Double } from "../helpers/s3.ts";
import { startTestServer } from "../helpers/server.ts";

/** Backups in a bucket. The double verifies signatures, digests and preconditions. */
const root = temporaryFolder();
const dataDir = join(root, "data");
const databaseUrl = `sqlite:${join(dataDir, "selvedge.db")}`;
const blobs = new FileBlobs(join(dataDir, "blobs"));
const day = 24 * 3_600_000;
let s3: S3Double & { url: string };
let store: S3ArchiveStore;
let restored = 0;

beforeAll(async () => {
  await (await openStorage(databaseUrl)).close();
  for (const key of fillTables(join(dataDir, "selvedge.db"), await tablesOf(currentSchema), 3))
    await blobs.put(key, Buffer.from(`content of ${key}`));
});
beforeEach(async () => {
  s3 = await startS3();
  store = storeAt("some/prefix/");
});
afterEach(async () => {
  await store.close();
  await s3.stop();
});
afterAll(() => rmSync(root, { recursive: true }));

function storeAt(prefix: string): S3ArchiveStore {
  const address = { endpoint: s3.endpoint, bucket: "bucket", isInPath: true, region: "us-east-1", prefix };
  return new S3ArchiveStore(
    new S3Store({ ...address, credentials: s3Credentials }),
    `s3://bucket/${prefix.slice(0, -1)}`,
  );
}
async function backUpTo(name: string): Promise<Manifest> {
  const source = await openSource(databaseUrl);
  try {
    return await backUp({ source, blobs, dataDir, target: { store, name } });
  } finally {
    await source.close();
  }
}
const restoreFrom = async (name: string): Promise<string> => {
  const folder = join(root, `restored-${++restored}`);
  const url = `sqlite:${join(folder, "selvedge.db")}`;
  const into = { dataDir: folder, databaseUrl: url, blobs: new FileBlobs(join(folder, "blobs")) };
  await restore({ archive: { store, name }, ...into });
  return folder;
};
const objects = (): string[] => [...s3.buckets.objects().keys()];
const partsOf = ({ tables, blobs: list }: Manifest): unknown => [tables, list.sha256];

it("are the same as those in a folder, and come back with their blobs", async () => {
  const inBucket = await backUpTo("one");
  expect(await store.names()).toEqual(["one"]);
  expect((await verify({ store, name: "one" })).blobs.count).toBeGreaterThan(5);
  const source = await openSource(databaseUrl);
  const folder = new FolderArchiveStore(root);
  const inFolder = await backUp({ source, blobs, dataDir, target: { store: folder, name: "folder" } });
  await source.close();
  expect(partsOf(inBucket)).toEqual(partsOf(inFolder));

  const to = await restoreFrom("one");
  const filesOf = (data: string): string[] =>
    readdirSync(join(data, "blobs"), { recursive: true }) as string[];
  const without = (names: string[]): string[] => names.filter((name) => name !== "incoming").toSorted();
  expect(without(filesOf(to))).toEqual(without(filesOf(dataDir)));
  await (await openStorage(`sqlite:${join(to, "selvedge.db")}`)).close();
  await expect(backUpTo("one")).rejects.toThrow("Expected no backup at s3://bucket/some/prefix/one");

  await store.remove("one");
  expect(objects()).toEqual([]);
});

it("are absent after a failure, at whichever call, and can be repeated under the same name", async () => {
  for (const failing of ["tables/", "blobs/", "blobs.ndjson", "manifest.sha256", "manifest.json"]) {
    let failed: string | undefined; // one of those that are written at the same time
    const applies = ({ method, key }: S3Call): boolean =>
      method === "PUT" && key.includes(failing) && (failed ??= key) === key;
    s3.fail("slowDown", applies, 5);
    await expect(backUpTo("again"), failing).rejects.toThrow("not available");
    expect(s3.faultsLeft, failing).toBe(0);
    expect([await store.names(), objects()], failing).toEqual([[], []]);
  }
  s3.fail("lost", ({ method, key }) => method === "PUT" && key.endsWith("manifest.json"));
  await backUpTo("again");
  await verify({ store, name: "again" });
});

it("are absent while the bucket is away, and complete when it returns", async () => {
  const making = backUpTo("away");
  await vi.waitFor(() => expect(objects().length).toBeGreaterThan(3), { interval: 1 });
  await s3.stop();
  await expect(making).rejects.toThrow("not available");
  await s3.start();
  expect(await store.names()).toEqual([]);
  await expect(restoreFrom("away")).rejects.toThrow("it has no manifest.json");
  await backUpTo("away");
  await verify({ store, name: "away" });
});

it("of which two are made at once under one name: one of them is there, whole", async () => {
  const ends = await Promise.allSettled([backUpTo("both"), backUpTo("both")]);
  const refused = ends.filter((end) => end.status === "rejected");
  expect(refused).toHaveLength(1);
  expect(String(refused[0]!.reason)).toContain("Another backup was written to");
  const { tables, files, blobs: list } = await verify({ store, name: "both" });
  expect(objects()).toHaveLength(tables.length + files.length + list.count + 4);
});

it("with a wrong, cut off or missing object are refused, with its name", async () => {
  await backUpTo("damaged");
  const nameOf = (key: string): string =>
    key.replace(/^.*\/run-[^/]+\//, "").replace(/^.*\/manifest/, "manifest");
  for (const [index, [key, object]] of [...s3.buckets.objects()].entries()) {
    const { bytes } = object;
    const part = nameOf(key) === "manifest.sha256" ? "manifest.json" : nameOf(key);
    const wrong = Buffer.from(bytes);
    wrong[(index * 7919) % wrong.length]! ^= 1;
    for (const damage of index % 10 === 0 ? [wrong, bytes.subarray(1)] : [wrong]) {
      object.bytes = damage;
      await expect(verify({ store, name: "damaged" }), key).rejects.toThrow(
        /^(The backup is damaged: |Expected a backup)/,
      );
      if (part !== "manifest.json")
        await expect(restoreFrom("damaged"), key).rejects.toThrow(`The backup is damaged: ${part} `);
    }
    object.bytes = bytes;
  }
  const [first] = objects();
  s3.buckets.objects().delete(first!);
  await expect(restoreFrom("damaged")).rejects.toThrow(`${nameOf(first!)} is missing`);
});

it("leave nothing of attempts that were killed more than a day ago", async () => {
  const run = "run-0123456789abcdef";
  const leave = (key: string, ageMs: number): void => {
    const writtenOn = Date.now() - ageMs;
    s3.buckets
      .objects()
      .set(`some/prefix/${key}`, { bytes: Buffer.from("x"), etag: "", metadata: {}, writtenOn });
  };
  await backUpTo("kept");
  leave(`killed/${run}/tables/zones.ndjson.zst`, day + 1000);
  leave(`kept/${run}/tables/zones.ndjson.zst`, day + 1000);
  leave(`running/${run}/tables/zones.ndjson.zst`, day + 1000);
  leave(`running/${run}/tables/users.ndjson.zst`, 1000);
  leave("mine/run-1", 9 * day);
  for (const object of s3.buckets.objects().values()) if (object.etag !== "") object.writtenOn -= 9 * day;
  await backUpTo("next");
  expect(objects().filter((key) => key.includes(run) || key.includes("mine"))).toEqual([
    `some/prefix/running/${run}/tables/zones.ndjson.zst`,
    `some/prefix/running/${run}/tables/users.ndjson.zst`,
    "some/prefix/mine/run-1",
  ]);
  expect((await store.names()).toSorted()).toEqual(["kept", "next"]);
  await verify({ store, name: "kept" });
});

it("holds content that is larger than a part, in parts", async () => {
  const piece = Buffer.alloc(1024 * 1024, "selvedge");
  const parts = async function* (): AsyncGenerator<Buffer> {
    for (let n = 0; n < 20; n++) yield piece;
  };
  s3.fail("lost", ({ method, query }) => method === "POST" && query.has("uploadId"));
  await store.files.write("large", parts());
  expect(s3.buckets.objects().get("some/prefix/large")?.bytes.length).toBe(20 * piece.length);
  s3.fail("slowDown", ({ query }) => query.get("partNumber") === "2", 5);
  await expect(store.files.write("failed", parts())).rejects.toThrow("not available");
  expect([objects(), s3.buckets.uploads.size]).toEqual([["some/prefix/large"], 0]);
});

it("are made by a node, which deletes the oldest", async () => {
  const old = ["2020-01-01T00-00-00.000Z", "2020-01-02T00-00-00.000Z"];
  store = storeAt("nodes/");
  for (const name of old) await backUpTo(name);
  const url = new URL(s3.url);
  url.pathname = "/nodes";
  const server = await startTestServer({
    ephemeral: false,
    dataDir: join(root, "node"),
    backupFolder: url.href,
    backupAccessKeyId: s3Credentials.accessKeyId,
    backupSecretAccessKey: s3Credentials.secretAccessKey,
    backupUnencrypted: true,
    backupEvery: "1s",
    backupKeep: 2,
  });
  const made = async (): Promise<string[]> => (await store.names()).filter((name) => name > "2021");
  const left = async (): Promise<string[]> => (await store.names()).filter((name) => old.includes(name));
  const isDone = async (): Promise<void> =>
    expect([(await made()).length >= 2, await left()]).toEqual([true, []]);
  await vi.waitFor(isDone, { timeout: 50_000, interval: 100 });
  await server.close(0);
  await verify({ store, name: (await made())[0]! });
});
