import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { temporaryFolder } from "../helpers/process.ts";
import { s3Credentials, startS3, type S3Double } from "../helpers/s3.ts";
import { ownerToken, startTestServer, type TestServer } from "../helpers/server.ts";

const run = promisify(execFile);
const folder = temporaryFolder();
const archive = join(folder, "archive");
const value = randomBytes(300_000);
let s3: S3Double & { url: string };
let server: TestServer;
beforeAll(async () => {
  s3 = await startS3();
  server = await startTestServer({
    ephemeral: false,
    dataDir: join(folder, "data"),
    blobUrl: s3.url,
    blobAccessKeyId: s3Credentials.accessKeyId,
    blobSecretAccessKey: s3Credentials.secretAccessKey,
  });
});
afterAll(async () => {
  await server.close(0);
  await s3.stop();
});

const selvedge = async (...args: string[]): Promise<unknown> =>
  run(process.execPath, ["bin/selvedge.js", ...args], {
    env: {
      ...process.env,
      AWS_ACCESS_KEY_ID: s3Credentials.accessKeyId,
      AWS_SECRET_ACCESS_KEY: s3Credentials.secretAccessKey,
    },
  });

it("a backup has the bytes of a bucket, and is restored into files and into a bucket", async () => {
  const base = `/accounts/${server.ready.account_id}/storage/kv/namespaces`;
  const created = await server.call("POST", base, { title: "shared" });
  const path = `${server.ready.api}${base}/${created.body.result.id as string}/values/large`;
  const headers = { authorization: `Bearer ${ownerToken}` };
  expect((await fetch(path, { method: "PUT", headers, body: value })).status).toBe(200);

  await selvedge("backup", archive, "--data-dir", join(folder, "data"), "--blob-url", s3.url);
  const files = join(folder, "files");
  await selvedge("restore", archive, "--data-dir", files);
  const names = readdirSync(join(files, "blobs/kv"), { recursive: true, withFileTypes: true });
  const [restored] = names.filter((entry) => entry.isFile());
  expect(readFileSync(join(restored!.parentPath, restored!.name)).equals(value)).toBe(true);

  const keys = [...s3.buckets.objects().keys()];
  expect(keys).toHaveLength(1);
  s3.buckets.objects().clear();
  await selvedge("restore", archive, "--data-dir", join(folder, "bucket"), "--blob-url", s3.url);
  expect([...s3.buckets.objects().keys()]).toEqual(keys);
  expect(Buffer.from(await (await fetch(path, { headers })).arrayBuffer()).equals(value)).toBe(true);
});
