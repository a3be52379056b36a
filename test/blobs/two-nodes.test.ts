import { createHash, randomBytes } from "node:crypto";
import { afterAll, beforeAll, expect, it } from "vitest";
import { readAssetConfig } from "../../src/workers/assets/config.ts";
import { startPostgres, type TestPostgres } from "../helpers/postgres.ts";
import { s3Credentials, startS3, type S3Double } from "../helpers/s3.ts";
import { ownerToken, startTestServer, type TestServer } from "../helpers/server.ts";
import { fourColors, jpegOf } from "../images/fixtures.ts";

let postgres: TestPostgres;
let s3: S3Double & { url: string };
let nodes: [TestServer, TestServer];
beforeAll(async () => {
  [postgres, s3] = await Promise.all([startPostgres(), startS3()]);
  const settings = {
    databaseUrl: await postgres.createDatabase(),
    blobUrl: s3.url,
    blobAccessKeyId: s3Credentials.accessKeyId,
    blobSecretAccessKey: s3Credentials.secretAccessKey,
  };
  nodes = [await startTestServer(settings), await startTestServer(settings)];
});
afterAll(async () => {
  for (const node of nodes) await node.close(1000);
  await s3.stop();
  await postgres.stop();
});

const call = (
  node: TestServer,
  method: string,
  path: string,
  body?: FormData | Uint8Array<ArrayBuffer>,
): Promise<Response> =>
  fetch(`${node.ready.api}/accounts/${node.ready.account_id}${path}`, {
    method,
    headers: { authorization: `Bearer ${ownerToken}` },
    ...(body === undefined ? {} : { body }),
  });
const bytesOf = async (response: Response): Promise<Buffer> => Buffer.from(await response.arrayBuffer());

it("a large value written at one node is read at the other, and is gone after its deletion", async () => {
  const [first, second] = nodes;
  const created = await first.call("POST", `/accounts/${first.ready.account_id}/storage/kv/namespaces`, {
    title: "shared",
  });
  const path = `/storage/kv/namespaces/${created.body.result.id as string}/values/large`;
  const value = randomBytes(3_000_000);
  expect((await call(first, "PUT", path, value)).status).toBe(200);
  expect((await bytesOf(await call(second, "GET", path))).equals(value)).toBe(true);
  expect((await call(second, "DELETE", path)).status).toBe(200);
  expect((await call(first, "GET", path)).status).toBe(404);
  expect([...s3.buckets.objects().keys()].filter((key) => key.startsWith("kv/"))).toEqual([]);
});

it("an image uploaded at one node is delivered at the other: as it is, and transformed", async () => {
  const [first, second] = nodes;
  const jpeg = await jpegOf(fourColors(64, 48));
  const form = new FormData();
  form.append("file", new File([new Uint8Array(jpeg)], "picture.jpg"));
  const uploaded = (await (await call(first, "POST", "/images/v1", form)).json()) as {
    result: { id: string };
  };
  const { id } = uploaded.result;
  expect(await bytesOf(await call(second, "GET", `/images/v1/${id}/blob`))).toEqual(jpeg);
  const path = `/cdn-cgi/imagedelivery/${second.ready.account_hash}/${id}/public`;
  const there = await fetch(second.ready.edge + path);
  expect(there.status).toBe(200);
  expect(await bytesOf(there)).toEqual(await bytesOf(await fetch(first.ready.edge + path)));
  expect((await call(second, "DELETE", `/images/v1/${id}`)).status).toBe(200);
  expect([...s3.buckets.objects().keys()].filter((key) => key.startsWith("images/"))).toEqual([]);
});

it("an asset uploaded at one node is served at the other, whole and in part", async () => {
  const [first, second] = nodes;
  const owner = { accountId: first.ready.account_id, scriptName: "site" };
  const content = randomBytes(200_000);
  const hash = createHash("sha256").update(content).digest("hex").slice(0, 32);
  const session = await first.services.assets.createSession(owner, [
    { path: "/a.bin", hash, sizeBytes: content.length },
  ]);
  const claims = await first.services.assets.verifyUpload(session.jwt);
  const jwt = await first.services.assets.upload(claims, (keep) =>
    keep({ hash, contentType: null, bytes: content }),
  );
  const manifestId = await second.services.assets.completeUpload(owner, jwt!);
  const { assetServer } = second.services;
  const site = await assetServer.site("site", manifestId, readAssetConfig({}).config);
  const get = async (headers: Record<string, string>): Promise<Buffer> => {
    const { body } = await assetServer.answer(site, { method: "GET", host: "x", path: "/a.bin", headers });
    return Buffer.isBuffer(body) ? body : Buffer.concat(await body!.toArray());
  };
  expect(await get({ range: "bytes=1000-150000" })).toEqual(content.subarray(1000, 150_001));
  expect(await get({})).toEqual(content);
});

it("calls get a 503 that names no server or path while the store is away, and succeed afterwards", async () => {
  const [first, second] = nodes;
  const created = await first.call("POST", `/accounts/${first.ready.account_id}/storage/kv/namespaces`, {
    title: "away",
  });
  const path = `/storage/kv/namespaces/${created.body.result.id as string}/values/large`;
  const value = randomBytes(200_000);
  expect((await call(first, "PUT", path, value)).status).toBe(200);
  await s3.stop();
  const refused = [await call(second, "GET", path), await call(second, "PUT", `${path}2`, value)];
  for (const response of refused) {
    expect([response.status, response.headers.get("retry-after")]).toEqual([503, "5"]);
    const text = await response.text();
    expect(text).toContain("The file store of this installation does not answer");
    expect(text).not.toMatch(/127\.0\.0\.1|bucket|ECONNREFUSED|kv\//);
  }
  expect((await bytesOf(await call(first, "GET", path))).equals(value)).toBe(true); // from its cache
  await s3.start();
  expect((await bytesOf(await call(second, "GET", path))).equals(value)).toBe(true);
  expect((await call(second, "GET", `${path}2`)).status).toBe(404);
});
