import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { afterEach, beforeEach, expect, it } from "vitest";
import { LogSpool } from "./spool.ts";
import type { SpoolOwner } from "./shares.ts";

const limits = { bytesMax: 64 * 1024, recordsMax: Infinity, intervalMs: 60_000, delimiter: "" };
const record = "x".repeat(4095) + "\n";
const kibibytes = 1024;

let folder: string;
let spool: LogSpool;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "selvedge-spool-"));
  spool = new LogSpool(folder, 4, pino({ enabled: false }));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** Writes to the spool of a job until it has no room. Returns how much it took. */
async function fill(owner: SpoolOwner): Promise<number> {
  await spool.measure();
  const writer = spool.writer(owner, "http_requests", limits);
  let bytes = 0;
  for (; spool.hasRoom(owner); bytes += record.length) await writer.write([record]);
  await writer.close();
  return bytes / kibibytes;
}
const filesOf = (): string[] =>
  readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) => /open|ready/.test(file));

it("keeps the room of each account, however many jobs of another fail", async () => {
  const greedy = Array.from({ length: 40 }, (_, id) => ({ id: id + 1, accountId: "greedy" }));
  const other = { id: 1000, accountId: "other" };
  spool.setActive([...greedy, other]);
  let taken = 0;
  for (const owner of greedy) taken += await fill(owner);
  // Its own part, half of what is common, and the end of the last file.
  expect(taken).toBeLessThanOrEqual(128 + 1024 + 64);
  expect(await fill(other)).toBeGreaterThanOrEqual(256);
  await spool.measure();
  expect(spool.bytes).toBeLessThan(4 * 1024 * 1024);
});

it("keeps room for the other jobs of an account while one fails", async () => {
  const [first, second] = [1, 2].map((id) => ({ id, accountId: "a" }));
  spool.setActive([first!, second!]);
  const taken = await fill(first!);
  expect(await fill(second!)).toBeGreaterThanOrEqual(taken / 3);
});

it("counts small files, which fill it too", async () => {
  const owner = { id: 1, accountId: "a" };
  spool.setActive([owner]);
  const writer = spool.writer(owner, "http_requests", limits);
  let files = 0;
  for (; spool.hasRoom(owner); files++) {
    await writer.write(["x\n"]);
    await writer.seal();
  }
  expect(files).toBeLessThanOrEqual((4 * 1024 * kibibytes) / (64 * kibibytes));
  await spool.measure();
  expect([spool.hasRoom(owner), filesOf().length]).toEqual([false, files]);
});

it("lets the last file of a job grow while many wait", async () => {
  spool = new LogSpool(folder, 1000, pino({ enabled: false }));
  const owner = { id: 1, accountId: "a" };
  const writer = spool.writer(owner, "http_requests", { ...limits, intervalMs: 1 });
  for (let file = 0; file < 64; file++) {
    await writer.write(["x\n"]);
    await writer.seal();
  }
  const waiting = filesOf().length;
  for (let i = 0; i < 20; i++) {
    await writer.write(["x\n"]);
    await new Promise((resolve) => setTimeout(resolve, 2)); // longer than the interval
  }
  expect(filesOf().length).toBe(waiting + 1);
  expect((await spool.ready(owner)).length).toBe(waiting);
  await writer.close();
  expect((await spool.ready(owner)).length).toBe(waiting + 1);
});

it("counts what was there before the start, also of jobs that do not collect", async () => {
  const disabled = { id: 1, accountId: "a" };
  await fill(disabled);
  spool = new LogSpool(folder, 4, pino({ enabled: false }));
  await spool.measure();
  expect(spool.hasRoom(disabled)).toBe(false);
  expect(await spool.owners()).toEqual([disabled]);
  await spool.removeJob(disabled);
  expect(spool.hasRoom(disabled)).toBe(true);
});

it("takes other files in its folder for nothing of its own", async () => {
  writeFileSync(join(folder, "note"), "");
  expect(await spool.owners()).toEqual([]);
  await spool.adopt(true);
});
