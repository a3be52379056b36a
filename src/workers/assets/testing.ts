import { createHash } from "node:crypto";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, expect } from "vitest";
import { FileBlobs } from "../../platform/storage/blobs.ts";
import { openStorage } from "../../platform/storage/storage.ts";
import type { AssetResponse } from "./asset-response.ts";
import { AssetServer } from "./asset-server.ts";
import { Assets } from "./assets.ts";
import { readAssetConfig } from "./config.ts";
import type { Site } from "./site.ts";

/** Deploys sites and requests their files. The services start before the tests of the file that imports this. */
let assets: Assets;
let assetServer: AssetServer;
beforeAll(async () => {
  const storage = await openStorage("sqlite::memory:");
  const blobs = new FileBlobs(mkdtempSync(join(tmpdir(), "selvedge-test-")));
  assets = new Assets(storage, blobs, "secret");
  assetServer = new AssetServer(assets, blobs, { cacheBytes: 64 * 1024 * 1024 });
});

export const hashOf = (content: string): string =>
  createHash("sha256").update(content).digest("hex").slice(0, 32);
let sites = 0;
export async function deploy(
  files: Record<string, string>,
  config: object = {},
  types: Record<string, string> = {},
): Promise<Site> {
  const owner = { accountId: "a".repeat(32), scriptName: `s${sites++}` };
  const entries = Object.entries(files).map(([path, content]) => ({
    path,
    hash: hashOf(content),
    sizeBytes: Buffer.byteLength(content),
  }));
  const session = await assets.createSession(owner, entries);
  let { jwt } = session;
  if (session.buckets.length > 0) {
    const claims = await assets.verifyUpload(jwt);
    const missing = new Set(session.buckets.flat());
    const completed = await assets.upload(claims, async (keep) => {
      for (const [path, content] of Object.entries(files))
        if (missing.has(hashOf(content)))
          await keep({
            hash: hashOf(content),
            contentType: types[path] ?? null,
            bytes: Buffer.from(content),
          });
    });
    jwt = completed!;
  }
  const manifestId = await assets.completeUpload(owner, jwt);
  return assetServer.site(owner.scriptName, manifestId, readAssetConfig(config).config);
}
export interface AssetReply {
  status: number;
  headers: Record<string, string>;
  body: Buffer;
}
export async function get(
  site: Site,
  path: string,
  headers: Record<string, string> = {},
  method = "GET",
): Promise<AssetReply> {
  const answer: AssetResponse = await assetServer.answer(site, {
    method,
    host: "www.example",
    path,
    headers,
  });
  const list: Record<string, string> = {};
  for (let i = 0; i < answer.headers.length; i += 2) list[answer.headers[i]!] = answer.headers[i + 1]!;
  const { body } = answer;
  const bytes =
    body === undefined ? Buffer.alloc(0) : Buffer.isBuffer(body) ? body : Buffer.concat(await body.toArray());
  return { status: answer.status, headers: list, body: bytes };
}
/** "200 /file's content" or "307 location". */
export async function outcome(site: Site, path: string): Promise<string> {
  const { status, headers, body } = await get(site, path);
  return `${status} ${headers["location"] ?? body.toString()}`.trim();
}

export async function expectOutcomes(site: Site, expected: Record<string, string>): Promise<void> {
  const paths = Object.keys(expected);
  const outcomes = await Promise.all(paths.map(async (path) => [path, await outcome(site, path)]));
  expect(Object.fromEntries(outcomes)).toEqual(expected);
}
