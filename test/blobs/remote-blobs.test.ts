import { randomBytes } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { afterEach, beforeEach, expect, it } from "vitest";
import { BlobCounts } from "../../src/platform/storage/blobs/blob-counts.ts";
import { RemoteBlobs } from "../../src/platform/storage/blobs/remote-blobs.ts";
import { S3Store } from "../../src/platform/storage/blobs/s3-store.ts";
import { BlobMissing, BlobsUnavailable } from "../../src/platform/storage/faults.ts";
import { createLogger } from "../../src/platform/observability/logger.ts";
import { s3Credentials, startS3, type S3Double } from "../helpers/s3.ts";

let s3: S3Double;
let store: S3Store;
let counts: BlobCounts;
beforeEach(async () => {
  s3 = await startS3();
  store = new S3Store({
    endpoint: s3.endpoint,
    bucket: "bucket",
    isInPath: true,
    region: "us-east-1",
    prefix: "",
    credentials: s3Credentials,
  });
  counts = new BlobCounts("s3");
});
afterEach(async () => {
  await store.close();
  await s3.stop();
});

/** A node with its own folder. */
const node = (folder = mkdtempSync(join(tmpdir(), "selvedge-blobs-")), cacheBytes = 1_000_000) => {
  const blobs = new RemoteBlobs({ store, folder, cacheBytes, counts, logger: createLogger("error") });
  const read = async (key: string, range?: { start: number; end: number }): Promise<Buffer | undefined> => {
    const blob = await blobs.get(key, range);
    return blob && (await buffer(blob.stream));
  };
  return { folder, blobs, read };
};
const kept = (folder: string): string[] =>
  readdirSync(join(folder, "kept"), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
const gets = (): number => s3.calls.filter((call) => call.startsWith("GET")).length;
const bytes = randomBytes(300_000);
async function* streamed(content = bytes): AsyncGenerator<Uint8Array> {
  yield content.subarray(0, 100);
  yield content.subarray(100);
}

it("reads at another node what a node wrote, whole and in part, and downloads it once", async () => {
  await node().blobs.put("a/streamed", streamed());
  await node().blobs.put("a/bytes", bytes);
  const { read, folder } = node();
  for (const key of ["a/streamed", "a/bytes"]) {
    const before = gets();
    const reads = await Promise.all([read(key), read(key), read(key, { start: 99, end: 299_998 })]);
    expect(reads[0]).toEqual(bytes);
    expect(reads[2]).toEqual(bytes.subarray(99, 299_999));
    expect(await read(key)).toEqual(bytes);
    expect(gets() - before).toBe(1);
  }
  expect(kept(folder)).toHaveLength(2);
  expect(counts.cache).toEqual({ hit: 2, miss: 6 });
});

it("keeps what it received as a stream, so that the first read is local", async () => {
  const { blobs, read } = node();
  await blobs.put("k", streamed());
  expect(await read("k")).toEqual(bytes);
  expect(gets()).toBe(0);
});

it("keeps no more bytes than its limit, and no file that is not in use", async () => {
  const { blobs, read, folder } = node(undefined, 700_000);
  for (const key of ["a", "b", "c", "d"]) await blobs.put(key, streamed());
  expect(kept(folder)).toHaveLength(2);
  const huge = randomBytes(800_000);
  await blobs.put("huge", streamed(huge));
  expect(await read("huge")).toEqual(huge);
  const file = await blobs.file("huge");
  expect(readFileSync(file.path)).toEqual(huge);
  file.release();
  expect(kept(folder)).toHaveLength(2);
  const first = await blobs.file("a");
  for (const key of ["b", "c", "d"]) (await blobs.file(key)).release();
  expect(readFileSync(first.path)).toEqual(bytes); // the cache evicted the file, which a reader still uses
  first.release();
  expect(kept(folder)).toHaveLength(2);
  expect(counts.cacheBytes()).toBeLessThanOrEqual(700_000);
});

it("serves no content of the store that differs from its digest", async () => {
  await node().blobs.put("k", bytes);
  const object = s3.buckets.objects().get("k")!;
  object.bytes = Buffer.from(object.bytes);
  object.bytes[200_000]! ^= 1;
  const { read, folder } = node();
  await expect(read("k")).rejects.toThrow("differs from its digest");
  expect([counts.damaged, kept(folder)]).toEqual([1, []]);
  expect(readdirSync(join(folder, "incoming"))).toEqual([]);
});

it("serves no cached file that was changed, also after a restart", async () => {
  const first = node();
  await first.blobs.put("k", streamed());
  const damage = (): void => {
    const [path] = kept(first.folder);
    const damaged = readFileSync(path!);
    damaged[1000]! ^= 1;
    writeFileSync(path!, damaged);
  };
  damage();
  expect(await first.read("k")).toEqual(bytes);
  expect(gets()).toBe(1);
  damage();
  expect(await node(first.folder).read("k")).toEqual(bytes);
  expect(gets()).toBe(2);
  expect(await node(first.folder).read("k")).toEqual(bytes);
  expect(gets()).toBe(2);
});

it("serves cached content while the store is away, and says so for other content", async () => {
  const { blobs, read } = node();
  await blobs.put("cached", streamed());
  await blobs.put("other", bytes);
  await s3.stop();
  expect(await read("cached")).toEqual(bytes);
  await expect(read("other")).rejects.toBeInstanceOf(BlobsUnavailable);
  await expect(blobs.put("new", bytes)).rejects.toBeInstanceOf(BlobsUnavailable);
  await s3.start();
  expect(await read("other")).toEqual(bytes);
  expect(counts.operations.get("get unavailable")).toBe(1);
});

it("deletes, reports missing content, and rejects what is no key", async () => {
  const { blobs, read } = node();
  await blobs.put("a/b/k", streamed());
  await blobs.put("a/c", bytes);
  await blobs.put("ab/k", bytes);
  expect(await blobs.folders("a")).toEqual(["b"]);
  await blobs.delete("a/b/k");
  expect([await read("a/b/k"), await blobs.head("a/b/k")]).toEqual([undefined, undefined]);
  await expect(blobs.file("a/b/k")).rejects.toBeInstanceOf(BlobMissing);
  expect(counts.missing).toBe(2);
  await blobs.deleteFolder("a");
  expect([...s3.buckets.objects().keys()]).toEqual(["ab/k"]);
  for (const key of ["../x", "/etc/passwd", "", "a//b", ".hidden"])
    await expect(blobs.put(key, bytes)).rejects.toThrow("not a blob key");
});

it("removes unnamed content, if it is old by the store's clock", async () => {
  const { blobs } = node();
  for (const key of ["kv/a/1", "kv/a/2", "kv/b/3", "kv/b/young"]) await blobs.put(key, bytes);
  const day = 24 * 3_600_000;
  for (const [key, object] of s3.buckets.objects())
    if (!key.endsWith("young")) object.writtenOn = Date.now() - day - 60_000;
  const asked: string[][] = [];
  const named = async (keys: readonly string[]): Promise<ReadonlySet<string>> => {
    asked.push([...keys]);
    return new Set(["kv/a/1"]);
  };
  expect(await blobs.removeUnnamed("kv", Date.now() - day, named)).toBe(2);
  expect(asked).toEqual([["kv/a/1", "kv/a/2"], ["kv/b/3"]]);
  expect([...s3.buckets.objects().keys()]).toEqual(["kv/a/1", "kv/b/young"]);
});

it("leaves nothing behind when the sender of content leaves", async () => {
  const { blobs, folder } = node();
  async function* broken(): AsyncGenerator<Uint8Array> {
    yield bytes;
    throw new Error("the sender left");
  }
  await expect(blobs.put("k", broken())).rejects.toThrow("the sender left");
  expect([s3.buckets.objects().size, readdirSync(join(folder, "incoming"))]).toEqual([0, []]);
});
