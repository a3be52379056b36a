import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { afterAll, beforeAll, expect, it } from "vitest";
import { registerBlobsCommand } from "../../src/cli/blobs.ts";
import { moveBlobs } from "../../src/platform/storage/blobs/move.ts";
import { FileBlobs } from "../../src/platform/storage/blobs.ts";
import { commandLine } from "../helpers/command.ts";
import { startPostgres, type TestPostgres } from "../helpers/postgres.ts";
import { s3Credentials, startS3, type S3Double } from "../helpers/s3.ts";
import { startTestServer, type TestServer } from "../helpers/server.ts";

let postgres: TestPostgres;
let s3: S3Double & { url: string };
beforeAll(async () => {
  [postgres, s3] = await Promise.all([startPostgres(), startS3()]);
});
afterAll(async () => {
  await s3.stop();
  await postgres.stop();
});

const folder = (): string => mkdtempSync(join(tmpdir(), "selvedge-move-"));
const credentials = {
  blobAccessKeyId: s3Credentials.accessKeyId,
  blobSecretAccessKey: s3Credentials.secretAccessKey,
};
const start = (settings: Record<string, unknown>): Promise<TestServer> =>
  startTestServer({ ephemeral: false, ...credentials, ...settings });

const cli = commandLine(registerBlobsCommand);
/** Runs `blobs move`. Returns what it wrote. */
async function move(dataDir: string, ...options: string[]): Promise<string> {
  const { accessKeyId, secretAccessKey } = s3Credentials;
  const flags = ["--blob-access-key-id", accessKeyId, "--blob-secret-access-key", secretAccessKey];
  return cli.run("blobs", "move", "--data-dir", dataDir, ...flags, ...options);
}

async function putValue(node: TestServer): Promise<{ id: string; value: Buffer }> {
  const { kv } = node.services;
  const { id } = await kv.createNamespace(node.ready.account_id, "values");
  const value = randomBytes(400_000);
  await kv.put(id, "large", value);
  return { id, value };
}
const valueOf = async (node: TestServer, id: string): Promise<Buffer> =>
  buffer((await node.services.kv.get(id, "large"))!.content as never);

it("a second node with files refuses to start, until the bytes are in a store for both", async () => {
  const databaseUrl = await postgres.createDatabase();
  const [own, other] = [folder(), folder()];
  const first = await start({ databaseUrl, dataDir: own });
  const { id, value } = await putValue(first);
  await expect(start({ databaseUrl, dataDir: other })).rejects.toThrow(
    /keeps its bytes as files of another node, at .*selvedge-move-.*Move them with "selvedge blobs move --to s3/,
  );
  await expect(start({ databaseUrl, dataDir: other, blobUrl: s3.url })).rejects.toThrow(
    /but --blob-url is s3:/,
  );
  const flags = ["--database-url", databaseUrl, "--to", s3.url];
  await expect(move(own, ...flags)).rejects.toThrow(/in use/);
  await first.close(1000);
  await expect(move(other, ...flags)).rejects.toThrow(/Run the command where those bytes can be read/);

  expect(await move(own, ...flags)).toMatch(/^Copied blobs: 1 \(400000 bytes\); there already: 0\./);
  await expect(start({ databaseUrl, dataDir: own })).rejects.toThrow(/keeps its bytes in s3:\/\/bucket\//);
  const nodes = [
    await start({ databaseUrl, dataDir: own, blobUrl: s3.url }),
    await start({ databaseUrl, dataDir: other, blobUrl: s3.url }),
  ];
  for (const node of nodes) expect((await valueOf(node, id)).equals(value)).toBe(true);
  for (const node of nodes) await node.close(1000);

  // Back into the database, from another node's folder.
  const back = ["--database-url", databaseUrl, "--blob-url", s3.url, "--to", "postgres"];
  expect(await move(other, ...back)).toMatch(/^Copied blobs: 1 /);
  const again = await start({ databaseUrl, dataDir: folder(), blobUrl: "postgres" });
  expect((await valueOf(again, id)).equals(value)).toBe(true);
  await again.close(1000);
});

it("a node whose folder is lost starts again if the operator accepts it", async () => {
  const databaseUrl = await postgres.createDatabase();
  const [lost, next] = [folder(), folder()];
  await (await start({ databaseUrl, dataDir: lost })).close(1000);
  rmSync(lost, { recursive: true });
  await expect(start({ databaseUrl, dataDir: next })).rejects.toThrow(/--accept-lost/);
  await move(next, "--database-url", databaseUrl, "--to", "files", "--accept-lost");
  await (await start({ databaseUrl, dataDir: next })).close(1000);
});

it("an installation with SQLite moves with its folder, and to a bucket and back", async () => {
  const dataDir = folder();
  const bucket = s3.url.replace("?", "/sqlite?");
  const first = await start({ dataDir });
  const { id, value } = await putValue(first);
  await first.close(1000);
  expect(await move(dataDir, "--to", bucket)).toMatch(/^Copied blobs: 1 /);
  expect(await move(dataDir, "--to", bucket)).toMatch(/already/);
  rmSync(join(dataDir, "blobs"), { recursive: true });
  rmSync(join(dataDir, "cache"), { recursive: true });
  expect(await move(dataDir, "--blob-url", bucket, "--to", "files")).toMatch(/^Copied blobs: 1 /);
  const again = await start({ dataDir });
  expect((await valueOf(again, id)).equals(value)).toBe(true);
  await again.close(1000);
});

it("a move that was interrupted goes on where it was", async () => {
  const [from, to] = [new FileBlobs(folder()), new FileBlobs(folder())];
  const contents = new Map<string, Buffer>();
  for (let i = 0; i < 20; i++) contents.set(`a/${i % 3}/${i}`, randomBytes(1000));
  for (const [key, bytes] of contents) await from.put(key, bytes);
  let puts = 0;
  const failing = Object.assign(Object.create(to) as FileBlobs, {
    head: to.head.bind(to),
    put: async (...args: Parameters<FileBlobs["put"]>) => {
      if (++puts > 7) throw new Error("the target is full");
      return to.put(...args);
    },
  });
  await expect(moveBlobs(from, failing, () => {})).rejects.toThrow("the target is full");
  const moved = await moveBlobs(from, to, () => {});
  expect(moved).toEqual({ copied: 13, copiedBytes: 13_000, skipped: 7 });
  for (const [key, bytes] of contents) expect(await buffer((await to.get(key))!.stream)).toEqual(bytes);
});
