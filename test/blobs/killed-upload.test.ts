import { randomBytes } from "node:crypto";
import { readdirSync, rmSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import { serve, temporaryFolder } from "../helpers/process.ts";
import { s3Credentials, startS3 } from "../helpers/s3.ts";
import { ownerToken, startTestServer } from "../helpers/server.ts";
import { callerOf } from "../helpers/writes.ts";

/** A node that is killed while it sends a large value to a bucket in parts. */
const day = 24 * 3_600_000;
const value = randomBytes(24 * 1024 * 1024);

it("leaves nothing of the upload that a reader could see, and what is left is swept after a day", async () => {
  const folder = temporaryFolder();
  const s3 = await startS3();
  onTestFinished(async () => {
    await s3.stop();
    rmSync(folder, { recursive: true });
  });
  const dataDir = join(folder, "data");
  const { accessKeyId, secretAccessKey } = s3Credentials;
  const server = await serve(["--data-dir", dataDir, "--blob-url", s3.url], {
    SELVEDGE_API_TOKEN: ownerToken,
    SELVEDGE_BLOB_ACCESS_KEY_ID: accessKeyId,
    SELVEDGE_BLOB_SECRET_ACCESS_KEY: secretAccessKey,
  });
  const call = callerOf(server.ready.api);
  const base = `/accounts/${server.ready.account_id}/storage/kv/namespaces`;
  const path = `${base}/${(await call("POST", base, { title: "killed" })).result.id as string}/values/large`;
  const old = Buffer.alloc(200 * 1024, "old");
  expect((await call("PUT", path, old)).status).toBe(200);
  const upload = call("PUT", path, value);
  upload.catch(() => {}); // its connection ends
  const parts = (): number =>
    [...s3.buckets.uploads.values()].reduce((sum, each) => sum + each.parts.size, 0);
  await vi.waitFor(() => expect(parts()).toBeGreaterThan(0), { interval: 1 });
  process.kill(server.ready.pid, "SIGKILL");
  await server.exited;
  await expect(upload).rejects.toThrow();
  expect([s3.buckets.objects().size, s3.buckets.uploads.size]).toEqual([1, 1]);
  const incoming = join(dataDir, "cache/blobs/incoming");
  expect(readdirSync(incoming)).toHaveLength(1);

  const settings = { blobUrl: s3.url, blobAccessKeyId: accessKeyId, blobSecretAccessKey: secretAccessKey };
  const again = await startTestServer({ ephemeral: false, dataDir, ...settings });
  const headers = { authorization: `Bearer ${ownerToken}` };
  const found = await fetch(`${again.ready.api}${path}`, { headers });
  expect(Buffer.from(await found.arrayBuffer()).equals(old)).toBe(true);
  for (const each of s3.buckets.uploads.values()) each.begunOn -= day + 1000;
  for (const name of readdirSync(incoming)) {
    const then = new Date(Date.now() - day - 1000);
    utimesSync(join(incoming, name), then, then);
  }
  await again.services.blobs.removeAbandoned(Date.now() - day);
  expect([s3.buckets.uploads.size, readdirSync(incoming)]).toEqual([0, []]);
  expect(s3.buckets.objects().size).toBe(1);
  await again.close(0);
});
