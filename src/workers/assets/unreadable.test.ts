import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { FileBlobs } from "../../platform/storage/blobs.ts";
import { openStorage } from "../../platform/storage/storage.ts";
import { AssetServer } from "./asset-server.ts";
import { Assets } from "./assets.ts";
import { readAssetConfig } from "./config.ts";

/** A session asks again for files whose bytes are gone, and a site that is being served then has them. */
const owner = { accountId: "a".repeat(32), scriptName: "site" };
const hashOf = (index: number): string => index.toString(16).padStart(32, "0");
const contentOf = (index: number): string => `file ${String(index).padStart(4, "0")}`;

async function platform() {
  const folder = mkdtempSync(join(tmpdir(), "selvedge-unreadable-"));
  const storage = await openStorage("sqlite::memory:");
  onTestFinished(async () => {
    await storage.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const blobs = new FileBlobs(folder);
  const node = (): Assets => new Assets(storage, blobs, "secret");
  const begin = (assets: Assets, count: number) =>
    assets.createSession(
      owner,
      Array.from({ length: count }, (_, i) => ({ path: `/${i}`, hash: hashOf(i), sizeBytes: 9 })),
    );
  const send = async (assets: Assets, jwt: string, indexes: readonly number[]): Promise<string | undefined> =>
    assets.upload(await assets.verifyUpload(jwt), async (keep) => {
      for (const i of indexes)
        await keep({ hash: hashOf(i), contentType: null, bytes: Buffer.from(contentOf(i)) });
    });
  const all = (count: number): number[] => Array.from({ length: count }, (_, i) => i);
  return { folder, blobs, node, begin, send, all };
}

it.each([3, 300])("asks for the missing files among %i, and for no others", async (count) => {
  const { blobs, node, begin, send, all } = await platform();
  const assets = node();
  const jwt = await send(assets, (await begin(assets, count)).jwt, all(count));
  const manifestId = await assets.completeUpload(owner, jwt!);
  expect((await begin(assets, count)).buckets).toEqual([]);

  // No cache in memory, so that each answer reads the file.
  const server = new AssetServer(assets, blobs, { cacheBytes: 1 });
  const site = await server.site("site", manifestId, readAssetConfig({}).config);
  const bodyOf = async (path: string): Promise<string> => {
    const { body } = await server.answer(site, { method: "GET", host: "x", path, headers: {} });
    return (Buffer.isBuffer(body) ? body : Buffer.concat(await body!.toArray())).toString();
  };
  const { files } = (await assets.load(manifestId))!;
  for (const i of [0, 2]) await blobs.delete(files.get(hashOf(i))!.blobKey);
  await expect(bodyOf("/2")).rejects.toThrow("is missing");

  const session = await begin(assets, count);
  expect(session.buckets).toEqual([[hashOf(0), hashOf(2)]]);
  expect(await send(assets, session.jwt, [0])).toBeUndefined(); // one is still missing
  expect(await send(assets, session.jwt, [2])).toBeTypeOf("string");
  expect((await begin(assets, count)).buckets).toEqual([]);
  for (const i of [0, 1, 2]) expect(await bodyOf(`/${i}`)).toBe(contentOf(i));
  expect((await Array.fromAsync(blobs.list())).length).toBe(count);
});

it("accepts a missing file on another node than the session's", async () => {
  const { blobs, node, begin, send, all } = await platform();
  const [first, second] = [node(), node()];
  const jwt = await send(first, (await begin(first, 3)).jwt, all(3));
  const manifestId = await first.completeUpload(owner, jwt!);
  const { blobKey } = (await first.load(manifestId))!.files.get(hashOf(1))!;
  await blobs.delete(blobKey);
  const session = await begin(first, 3);
  expect(session.buckets).toEqual([[hashOf(1)]]);
  expect(await send(second, session.jwt, [1])).toBeTypeOf("string");
  expect(await blobs.head(blobKey)).toEqual({ sizeBytes: 9 });
  expect((await begin(first, 3)).buckets).toEqual([]);
});
