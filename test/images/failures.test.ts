import { once } from "node:events";
import { existsSync, readdirSync, rmSync } from "node:fs";
import { createServer, request as httpRequest, type ClientRequest } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import sharp from "sharp";
import { expect, it, onTestFinished } from "vitest";
import { readImageForm } from "../../src/products/images/input/api-form.ts";
import { canMakeDisks, fillDisk, smallDisk } from "../helpers/disk.ts";
import { serve, temporaryFolder } from "../helpers/process.ts";
import { ownerToken, type ApiResponse } from "../helpers/server.ts";
import { fourColors, jpegOf, noise, pngOf } from "./fixtures.ts";
import { startImagePlatform } from "./platform.ts";

/** Images when a client, the disk or the platform itself fails midway. */

/** The beginning of an upload of 1 MB. */
function begin(url: string, bytes: Buffer): ClientRequest {
  const request = httpRequest(url, {
    method: "POST",
    headers: { "content-type": "multipart/form-data; boundary=x", "content-length": 1_000_000 },
  });
  request.on("error", () => {});
  request.write('--x\r\nContent-Disposition: form-data; name="file"; filename="a.jpg"\r\n\r\n');
  request.write(bytes);
  return request;
}

const post = async (url: string, bytes: Buffer): Promise<Response> => {
  const form = new FormData();
  form.set("file", new File([new Uint8Array(bytes)], "a.jpg"));
  return fetch(url, { method: "POST", body: form });
};

const filesIn = (folder: string): string[] =>
  existsSync(folder)
    ? readdirSync(folder, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map(({ name }) => name)
    : [];

it("an aborted upload fails with 5433, and nothing of it stays", async () => {
  const dataDir = temporaryFolder();
  const platform = await startImagePlatform({ ephemeral: false, dataDir });
  onTestFinished(() => platform.close(1000));
  const intake = platform.services.images.uploads.intake(platform.ready.account_id);
  const { promise: fault, resolve } = Promise.withResolvers<unknown>();
  const server = createServer((request) => void readImageForm(request, [], intake).catch(resolve));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const jpeg = await jpegOf(fourColors(64, 48));
  const { port } = server.address() as AddressInfo;
  const request = begin(`http://127.0.0.1:${port}/`, Buffer.concat([jpeg, Buffer.alloc(200_000)]));
  const incoming = join(dataDir, "blobs/incoming");
  await expect.poll(() => filesIn(incoming).length).toBe(1);
  request.destroy();
  expect(await fault).toMatchObject({ kind: "images.aborted" });
  expect(filesIn(join(dataDir, "blobs"))).toEqual([]);
});

it.skipIf(!canMakeDisks)(
  "on a full disk uploads fail with 5453 and leave nothing; stored images are still delivered and transformed",
  async () => {
    const folder = await smallDisk(32 * 1024 * 1024);
    // Only files are on the full disk: SQLite would resolve the folder to its real path on another disk.
    const settings = { ephemeral: false, dataDir: folder, databaseUrl: "sqlite::memory:" };
    const platform = await startImagePlatform(settings);
    onTestFinished(() => platform.close(1000));
    const size = { width: 1600, height: 1200 };
    const large = await sharp(noise(size.width * size.height * 3), { raw: { ...size, channels: 3 } })
      .jpeg()
      .toBuffer();
    expect(large.length).toBeGreaterThan(1024 * 1024);
    const id = await platform.store(await pngOf(fourColors(400, 300)));
    const photo = await platform.store(large);
    expect((await platform.deliver(id, "w=20")).status).toBe(200);
    const draft = (await platform.api("POST", "/v2/direct_upload")).body.result as { uploadURL: string };

    fillDisk(join(folder, "filler"), 64 * 1024);
    const refused = await platform.upload(large);
    expect([refused.status, refused.body.errors[0]!.code]).toEqual([507, 5453]);
    const direct = await post(draft.uploadURL, large);
    expect([direct.status, await direct.text()]).toEqual([507, expect.stringContaining('"code":5453')]);
    expect(filesIn(join(folder, "blobs/incoming"))).toEqual([]);
    expect((await platform.api("GET", "/v1/stats")).body.result.count.current).toBe(2);
    const again = await platform.deliver(id, "w=20");
    expect([again.status, again.headers.get("cf-cache-status")]).toEqual([200, "HIT"]);
    // Results that do not fit on the disk are delivered from memory.
    for (const expected of ["MISS", "HIT"]) {
      const made = await platform.deliver(photo, "w=250,f=png");
      expect([made.status, made.headers.get("cf-cache-status")]).toEqual([200, expected]);
    }

    rmSync(join(folder, "filler"));
    expect((await platform.upload(large)).status).toBe(200);
    expect((await post(draft.uploadURL, large)).status).toBe(200);
  },
);

it("after a kill during a direct upload the draft is usable, and the sweep leaves no orphan", async () => {
  const dataDir = temporaryFolder();
  const jpeg = await jpegOf(fourColors(64, 48));
  const killed = await serve(["--data-dir", dataDir], { SELVEDGE_API_TOKEN: ownerToken });
  const account = `${killed.ready.api}/accounts/${killed.ready.account_id}`;
  const created = await fetch(`${account}/images/v2/direct_upload`, {
    method: "POST",
    headers: { authorization: `Bearer ${ownerToken}` },
  });
  const { id, uploadURL } = ((await created.json()) as ApiResponse["body"]).result as Record<
    "id" | "uploadURL",
    string
  >;
  begin(uploadURL, Buffer.concat([jpeg, Buffer.alloc(200_000)]));
  await expect.poll(() => filesIn(join(dataDir, "blobs/incoming")).length).toBe(1);
  killed.process.kill("SIGKILL");
  expect(await killed.exited).toBe("SIGKILL");

  const platform = await startImagePlatform({ ephemeral: false, dataDir });
  onTestFinished(() => platform.close(1000));
  expect((await platform.api("GET", `/v1/${id}`)).body.result).toMatchObject({ id, draft: true });
  const { origin } = new URL(platform.ready.delivery);
  const uploaded = await post(`${origin}${new URL(uploadURL).pathname}`, jpeg);
  expect(uploaded.status).toBe(200);
  expect((await platform.deliver(id, "w=10")).status).toBe(200);
  expect(filesIn(join(dataDir, "blobs/incoming")).length).toBe(1);
  await platform.services.images.uploads.sweep(Date.now() + 48 * 3_600_000);
  expect(filesIn(join(dataDir, "blobs/incoming"))).toEqual([]);
  expect(filesIn(join(dataDir, "blobs/images")).length).toBe(1);
});
