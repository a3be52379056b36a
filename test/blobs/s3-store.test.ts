import { randomBytes } from "node:crypto";
import { buffer } from "node:stream/consumers";
import { afterEach, beforeEach, expect, it } from "vitest";
import { contentOf } from "../../src/platform/storage/blobs/content.ts";
import { S3Store } from "../../src/platform/storage/blobs/s3-store.ts";
import { BlobsUnavailable } from "../../src/platform/storage/faults.ts";
import { s3Credentials, startS3, type S3Double } from "../helpers/s3.ts";

let s3: S3Double;
let store: S3Store;
beforeEach(async () => {
  s3 = await startS3();
  store = storeWith({});
});
afterEach(async () => {
  await store.close();
  await s3.stop();
});
const storeWith = (credentials: object): S3Store =>
  new S3Store({
    endpoint: s3.endpoint,
    bucket: "bucket",
    isInPath: true,
    region: "us-east-1",
    prefix: "some/prefix/",
    credentials: { ...s3Credentials, ...credentials },
  });
const read = async (key: string): Promise<Buffer | undefined> => {
  const found = await store.get(key);
  return found && (await buffer(found.stream));
};
const keys = async (prefix: string): Promise<string[]> =>
  (await Array.fromAsync(store.list(prefix))).map(({ key }) => key);
const small = randomBytes(100_000);

it("puts, gets, lists and deletes objects under its prefix", async () => {
  await store.put("a/one", contentOf(small));
  await store.put("a/b/two", contentOf(Buffer.alloc(0)));
  await store.put("c/three", contentOf(Buffer.from("3")));
  s3.buckets.objects().set("other", { bytes: small, etag: "", metadata: {}, writtenOn: 0 });
  expect(await read("a/one")).toEqual(small);
  expect(await read("a/b/two")).toEqual(Buffer.alloc(0));
  expect(await store.head("a/one")).toEqual({ sizeBytes: 100_000, sha256: contentOf(small).sha256 });
  s3.buckets.pageKeys = 1;
  expect(await keys("")).toEqual(["a/b/two", "a/one", "c/three"]);
  expect(await keys("a/")).toEqual(["a/b/two", "a/one"]);
  expect(await store.folders("a/")).toEqual(["b"]);
  await store.delete("a/one");
  await store.delete("a/one");
  expect([await read("a/one"), await store.head("a/one")]).toEqual([undefined, undefined]);
});

it.each(["slowDown", "reset", "lost", "conflict", "error200"] as const)(
  "repeats a write and a read after the fault %s",
  async (kind) => {
    s3.fail(kind, ({ method }) => method === "PUT", 2);
    await store.put("k", contentOf(small));
    if (kind !== "error200") s3.fail(kind, ({ method }) => method === "GET", 2);
    expect(await read("k")).toEqual(small);
    // An answer to HEAD has no body that could say more than its status.
    if (kind !== "error200") s3.fail(kind, ({ method }) => method === "HEAD", 2);
    expect(await store.head("k")).toMatchObject({ sizeBytes: small.length });
    expect(s3.faultsLeft).toBe(0);
  },
);

it("gives up after four retries, and says that the store is not available", async () => {
  s3.fail("slowDown", () => true, 5);
  await expect(store.put("k", contentOf(small))).rejects.toBeInstanceOf(BlobsUnavailable);
  expect(s3.calls).toHaveLength(5);
  await store.put("k", contentOf(small));
});

it("goes on with the rest of an object when a read breaks, and fails if the object has changed", async () => {
  await store.put("k", contentOf(small));
  s3.fail("cut", ({ method }) => method === "GET", 2);
  expect(await read("k")).toEqual(small);
  expect(s3.faultsLeft).toBe(0);

  const found = await store.get("k"); // has the old tag
  s3.buckets.objects().set("some/prefix/k", { bytes: small, etag: '"new"', metadata: {}, writtenOn: 0 });
  found!.stream.destroy();
  s3.fail("cut", ({ method }) => method === "GET");
  const broken = await store.get("k");
  s3.buckets.objects().set("some/prefix/k", { bytes: small, etag: '"newer"', metadata: {}, writtenOn: 0 });
  await expect(buffer(broken!.stream)).rejects.toThrow("412");
});

it("follows the store's clock", async () => {
  s3.skewMs = 3 * 3_600_000;
  await store.put("k", contentOf(small));
  expect(s3.calls).toHaveLength(2);
  expect(await read("k")).toEqual(small);
  expect(s3.calls).toHaveLength(3);
});

it("does not repeat what is refused, and keeps the server's text to itself", async () => {
  const wrong = storeWith({ secretAccessKey: "wrong" });
  await expect(wrong.put("k", contentOf(small))).rejects.toThrow(
    /^The S3 server answered 403 SignatureDoesNotMatch$/,
  );
  expect(s3.calls).toHaveLength(1);
  await wrong.close();
});

const large = randomBytes(17 * 1024 * 1024);
it("puts large content in parts, after faults of a part and of the completion", async () => {
  s3.fail("slowDown", ({ query }) => query.get("partNumber") === "2");
  s3.fail("lost", ({ method, query }) => method === "POST" && query.has("uploadId"));
  await store.put("large", contentOf(large));
  expect(s3.buckets.objects().get("some/prefix/large")?.bytes.equals(large)).toBe(true);
  expect(await store.head("large")).toMatchObject({ sha256: contentOf(large).sha256 });
  s3.fail("error200", ({ method, query }) => method === "POST" && query.has("uploadId"));
  await store.put("again", contentOf(large));
  expect([s3.faultsLeft, s3.buckets.uploads.size]).toEqual([0, 0]);
});

it("aborts an upload in parts that fails, and removes those of writers that died", async () => {
  s3.fail("slowDown", ({ query }) => query.has("partNumber"), 15);
  await expect(store.put("large", contentOf(large))).rejects.toBeInstanceOf(BlobsUnavailable);
  expect([s3.buckets.objects().size, s3.buckets.uploads.size]).toEqual([0, 0]);

  const day = 24 * 3_600_000;
  const upload = { key: "some/prefix/x", metadata: {}, parts: new Map() };
  s3.buckets.uploads.set("old", { ...upload, begunOn: Date.now() - day - 1000 });
  s3.buckets.uploads.set("young", { ...upload, begunOn: Date.now() - 1000 });
  s3.buckets.uploads.set("foreign", { ...upload, key: "x", begunOn: 0 });
  await store.removeAbandoned(day);
  expect([...s3.buckets.uploads.keys()]).toEqual(["young", "foreign"]);
});
