import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, expect, it, onTestFinished, vi } from "vitest";
import { chainNames, segmentsOf } from "../../src/platform/log-shipping/chain.ts";
import { restoreLog, type RestoredLog } from "../../src/platform/log-shipping/restore-log.ts";
import type { Archive } from "../../src/platform/storage/archive/archive.ts";
import { FolderArchive } from "../../src/platform/storage/archive/folder.ts";
import { S3ArchiveStore } from "../../src/platform/storage/archive/s3.ts";
import { FileBlobs } from "../../src/platform/storage/blobs.ts";
import { S3Store } from "../../src/platform/storage/blobs/s3-store.ts";
import { serve, temporaryFolder, type ServerProcess } from "../helpers/process.ts";
import { s3Credentials, startS3 } from "../helpers/s3.ts";
import { ownerToken } from "../helpers/server.ts";
import { callerOf, type Call } from "../helpers/writes.ts";

/** A platform that ships its log, and restores to the times of its acknowledged writes. */
const folder = temporaryFolder();
const dataDir = join(folder, "data");
let target = join(folder, "backups");
const environment = {
  SELVEDGE_API_TOKEN: ownerToken,
  SELVEDGE_API_RATE_LIMIT: "0",
  SELVEDGE_BACKUP_ACCESS_KEY_ID: s3Credentials.accessKeyId,
  SELVEDGE_BACKUP_SECRET_ACCESS_KEY: s3Credentials.secretAccessKey,
  SELVEDGE_BACKUP_UNENCRYPTED: "true",
};
const largeBytes = 200 * 1024;
let files: Archive = new FolderArchive(target);
const waiting = { interval: 50 };
/** The time after each acknowledged write, by its number. */
const acknowledged: number[] = [Date.now()];
let restores = 0;
let server: ServerProcess | undefined;
afterAll(async () => {
  server?.process.kill("SIGKILL");
  rmSync(folder, { recursive: true });
});

async function start(): Promise<{ call: Call; path: string }> {
  const args = ["--data-dir", dataDir, "--backup-folder", target, "--backup-log", "1s"];
  server = await serve(args, environment);
  const call = callerOf(server.ready.api);
  const base = `/accounts/${server.ready.account_id}/storage/kv/namespaces`;
  const { result } = await call("GET", base);
  const found = (result as { id: string }[])[0]?.id;
  const id = found ?? ((await call("POST", base, { title: "counted" })).result.id as string);
  return { call, path: `${base}/${id}` };
}

/** Writes numbers one after the other; every third is a large value, whose bytes are a blob. */
async function write({ call, path }: { call: Call; path: string }, count: number): Promise<void> {
  for (let n = 0; n < count; n++) {
    const number = acknowledged.length;
    const isLarge = number % 3 === 0;
    const value = isLarge ? Buffer.alloc(largeBytes, `${number} `) : String(number);
    expect((await call("PUT", `${path}/values/${isLarge ? "large" : "small"}`, value)).status).toBe(200);
    const ms = Date.now();
    acknowledged.push(ms);
    await vi.waitFor(() => expect(Date.now()).toBeGreaterThan(ms + 1), { interval: 1 });
  }
}

async function restoreTo(toMs: number | undefined): Promise<{ numbers: number[]; restored: RestoredLog }> {
  const to = join(folder, `restored-${++restores}`);
  const databasePath = join(to, "selvedge.db");
  const blobs = new FileBlobs(join(to, "blobs"));
  const restored = await restoreLog({ files, toMs, dataDir: to, databasePath, blobs });
  const database = new DatabaseSync(databasePath);
  const rows = database.prepare("select value, blob_key from kv_entries").all();
  database.close();
  const numbers = rows.map((row) => {
    if (row["blob_key"] === null) return Number(Buffer.from(row["value"] as Uint8Array).toString());
    const bytes = readFileSync(blobs.path(row["blob_key"] as string));
    expect(bytes.equals(Buffer.alloc(largeBytes, `${parseInt(bytes.toString(), 10)} `))).toBe(true);
    return parseInt(bytes.toString(), 10);
  });
  expect(restored.missingBlobs).toEqual([]);
  rmSync(to, { recursive: true });
  return { numbers: numbers.toSorted((a, b) => a - b), restored };
}

/** The values after so many writes: the last large one, and the last small one. */
const valuesAfter = (number: number): number[] => {
  const large = number - (number % 3);
  const small = number % 3 === 0 ? number - 1 : number;
  return [large, small].filter((each) => each > 0).toSorted((a, b) => a - b);
};
const shippedUntil = async (ms: number): Promise<void> =>
  vi.waitFor(async () => {
    const [last] = (await chainNames(files)).slice(-1);
    const segments = await segmentsOf(files, last!);
    expect(segments.at(-1)?.copiedMs ?? 0).toBeGreaterThan(ms);
  }, waiting);

it("is what was acknowledged until then, also after a kill, a stop and a second chain", async () => {
  let platform = await start();
  const isCounting = async (): Promise<void> =>
    expect(
      (await chainNames(files)).filter((name) =>
        readdirSync(join(target, "log", name)).includes("chain.json"),
      ),
    ).toHaveLength(1);
  await vi.waitFor(isCounting, waiting);
  await write(platform, 7);
  await shippedUntil(acknowledged.at(-1)!);
  await write(platform, 4);
  process.kill(server!.ready.pid, "SIGKILL"); // not the process that started it, whose end stops it gently
  await server!.exited;
  platform = await start();
  await write(platform, 7);
  await shippedUntil(acknowledged.at(-1)!);
  expect(await chainNames(files)).toHaveLength(1);
  await write(platform, 4);
  server!.process.kill("SIGTERM");
  await server!.exited;
  platform = await start();
  await vi.waitFor(async () => expect(await chainNames(files)).toHaveLength(2), {
    interval: 50,
  });
  await shippedUntilChain(2);
  await write(platform, 4);
  await shippedUntil(acknowledged.at(-1)!);

  for (let number = 1; number < acknowledged.length; number++) {
    const { numbers } = await restoreTo(acknowledged[number]);
    expect(numbers, String(number)).toEqual(valuesAfter(number));
  }
  expect((await restoreTo(undefined)).numbers).toEqual(valuesAfter(acknowledged.length - 1));
  await expect(restoreTo(Date.parse("2020-01-01"))).rejects.toThrow("which is the earliest at");
});

async function shippedUntilChain(count: number): Promise<void> {
  const isComplete = async (): Promise<void> => {
    const names = await chainNames(files);
    expect(names).toHaveLength(count);
    expect(readdirSync(join(target, "log", names.at(-1)!))).toContain("chain.json");
  };
  await vi.waitFor(isComplete, waiting);
}

it("is shipped to a bucket that was away, and refused with the name of a damaged part", async () => {
  server!.process.kill("SIGTERM");
  await server!.exited;
  const s3 = await startS3();
  onTestFinished(async () => s3.stop());
  const store = new S3Store({
    endpoint: s3.endpoint,
    bucket: "bucket",
    isInPath: true,
    region: "us-east-1",
    prefix: "log/",
    credentials: s3Credentials,
  });
  const url = new URL(s3.url);
  url.pathname = "/log";
  files = new S3ArchiveStore(store, "s3://bucket/log").files;
  target = url.href;
  const before = acknowledged.length - 1;
  const platform = await start();
  await vi.waitFor(() => expect([...s3.buckets.objects().keys()].join(" ")).toContain("chain.json"), waiting);
  await write(platform, 3);
  await s3.stop();
  await write(platform, 6);
  await vi.waitFor(() => expect(server!.stderr()).toContain("could not be shipped"), waiting);
  await write(platform, 3);
  await s3.start();
  await shippedUntil(acknowledged.at(-1)!);
  for (let number = before + 1; number < acknowledged.length; number++)
    expect((await restoreTo(acknowledged[number])).numbers, String(number)).toEqual(valuesAfter(number));

  for (const [key, object] of s3.buckets.objects()) {
    const { bytes } = object;
    if (bytes.length === 0 || key.endsWith("blobs.zst")) continue; // the list is read by the removal of blobs only
    if (key.includes("log/blobs/") && !key.includes("@")) continue;
    object.bytes = Buffer.from(bytes);
    object.bytes[bytes.length >> 1]! ^= 1;
    const isNeeded = !key.includes("log/blobs/");
    if (isNeeded) await expect(restoreTo(undefined), key).rejects.toThrow("The backup is damaged: ");
    object.bytes = bytes;
  }
  const [segment] = [...s3.buckets.objects()].find(([key]) => key.includes("/segments/"))!;
  s3.buckets.objects().delete(segment);
  await expect(restoreTo(undefined)).rejects.toThrow("lacks segment 1");
});
