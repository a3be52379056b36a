import { fork } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { parseBlobUrl, type S3Url } from "../../src/platform/config/blob-url.ts";
import { createLogger } from "../../src/platform/observability/logger.ts";
import { s3Address } from "../../src/platform/s3-settings.ts";
import { BlobCounts } from "../../src/platform/storage/blobs/blob-counts.ts";
import { RemoteBlobs } from "../../src/platform/storage/blobs/remote-blobs.ts";
import { S3Store } from "../../src/platform/storage/blobs/s3-store.ts";
import { FileBlobs, type Blobs } from "../../src/platform/storage/blobs.ts";
import { temporaryFolder } from "../helpers/process.ts";

/**
 * Blobs in a bucket are compared with blobs in files: CPU time of the first and of later reads of 1 MB, and the memory
 * of an upload of 100 MB. `node test/proofs/blob-costs.ts`
 */
const folder = temporaryFolder();
const server = fork(join(import.meta.dirname, "../chaos/store-process.ts"), { stdio: "inherit" });
const [{ url, ...credentials }] = (await once(server, "message")) as [
  { url: string; accessKeyId: string; secretAccessKey: string },
];
const logger = createLogger("error");
const remote = (name: string): RemoteBlobs =>
  new RemoteBlobs({
    store: new S3Store({ ...s3Address(parseBlobUrl(url) as S3Url), credentials }),
    folder: join(folder, name),
    cacheBytes: 1e9,
    counts: new BlobCounts("s3"),
    logger,
  });
const [writer, reader, files] = [remote("writer"), remote("reader"), new FileBlobs(join(folder, "files"))];
let failures = 0;
function row(what: string, value: number, max: number): void {
  if (value > max) failures++;
  process.stdout.write(`| ${what} | ${value.toFixed(2)} | ${max} |\n`);
}

const size = 100 * 1024 * 1024;
const chunk = randomBytes(256 * 1024);
const upload = async (key: string): Promise<number> => {
  await writer.put(`${key}-warm`, [chunk].values() as unknown as AsyncIterable<Uint8Array>);
  const before = process.memoryUsage.rss();
  let highest = before;
  const timer = setInterval(() => (highest = Math.max(highest, process.memoryUsage.rss())), 5);
  async function* content(): AsyncGenerator<Uint8Array> {
    for (let sent = 0; sent < size; sent += chunk.length) yield chunk;
  }
  await writer.put(key, content());
  clearInterval(timer);
  return (highest - before) / 1024 / 1024;
};

process.stdout.write("| what | measured | at most |\n|---|---|---|\n");
// First, because a process gives memory that it has used back late.
row("upload of 100 MB, more RSS in MB", await upload("large"), 40);

const count = 60;
const keys = Array.from({ length: count }, (_, n) => `costs/${n}`);
const megabyte = randomBytes(1_000_000);
for (const key of keys) {
  await writer.put(key, megabyte);
  await files.put(key, megabyte);
}
/** CPU time of reading all keys, in milliseconds for each. */
async function read(blobs: Blobs): Promise<number> {
  const before = process.cpuUsage();
  for (const key of keys) {
    const found = (await blobs.get(key))!;
    if ((await buffer(found.stream)).length !== megabyte.length) throw new Error("wrong length");
  }
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000 / count;
}
const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1]!;
for (let round = 0; round < 3; round++) await read(files);
const first = (await read(reader)) / median([await read(files), await read(files), await read(files)]);
row("first read of 1 MB / of a file, CPU", first, 12);
const later: number[] = [];
for (let round = 0; round < 15; round++) {
  const [a, b] = round % 2 === 0 ? [reader, files] : [files, reader];
  const [one, other] = [await read(a), await read(b)];
  later.push(round % 2 === 0 ? one / other : other / one);
}
row("later reads of 1 MB / of a file, CPU", median(later), 1.1);
server.disconnect();
rmSync(folder, { recursive: true });
process.exit(failures === 0 ? 0 : 1);
