import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { pino } from "pino";
import { afterEach, beforeEach, expect, it } from "vitest";
import { Results } from "./results.ts";
import { cpuMs } from "../../../../test/helpers/cpu-ms.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "selvedge-results-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const hash = (text: string): string => createHash("sha256").update(text).digest("hex");
const nameOf = (source: string, key: string): string => `${hash(source)}/${hash(key).slice(0, 32)}`;
const open = (memoryBytesMax = 1_000_000, diskBytesMax = 10_000_000): Results =>
  new Results({ folder, memoryBytesMax, diskBytesMax, logger: pino({ level: "silent" }) });

/** Writes a file as the image process does. */
function write(results: Results, name: string, bytes: Buffer, isWanted = true): void {
  mkdirSync(dirname(results.path(name)), { recursive: true });
  writeFileSync(results.path(name), bytes);
  results.adopt(name, bytes.length, () => isWanted);
}
const read = async (results: Results, name: string): Promise<Buffer | string | undefined> => {
  const stored = await results.get(name);
  return stored && ("bytes" in stored ? stored.bytes : stored.path);
};

it("returns small results from memory, others from their file", async () => {
  const results = open();
  const [small, middle, large] = [
    Buffer.alloc(1000, 1),
    Buffer.alloc(500_000, 2),
    Buffer.alloc(2_000_000, 3),
  ];
  for (const [key, bytes] of Object.entries({ small, middle, large }))
    write(results, nameOf("a", key), bytes);
  // The first request leases a buffer; the second one caches the result in memory.
  for (const isKept of [false, true]) {
    expect((await read(results, nameOf("a", "small"))) as Buffer).toEqual(small);
    expect(results.inMemory(nameOf("a", "small"))?.equals(small)).toBe(isKept ? true : undefined);
  }
  expect(results.inMemory(nameOf("a", "middle"))).toBeUndefined();
  expect((await read(results, nameOf("a", "middle"))) as Buffer).toEqual(middle);
  expect(await read(results, nameOf("a", "large"))).toBe(results.path(nameOf("a", "large")));
  expect(await results.get(nameOf("a", "nothing"))).toBeUndefined();
  results.close();
});

it("leases buffers for reads from disk: no two readers share one, and it is reused only after its release", async () => {
  const results = open();
  const names = ["a", "b", "c"].map((key) => nameOf("a", key));
  for (const [i, name] of names.entries()) write(results, name, Buffer.alloc(300_000 + i, i));
  const borrow = async (i: number) =>
    (await results.get(names[i]!)) as { bytes: Buffer; release: () => void };
  const [first, second] = await Promise.all([borrow(0), borrow(1)]);
  first.release();
  const third = await borrow(2);
  expect([third.bytes.buffer === first.bytes.buffer, third.bytes.buffer === second.bytes.buffer]).toEqual([
    true,
    false,
  ]);
  expect(second.bytes.equals(Buffer.alloc(300_001, 1))).toBe(true);
  expect(third.bytes.equals(Buffer.alloc(300_002, 2))).toBe(true);
  results.close();
});

it("leases large buffers to a few readers only: further ones get exactly the size they need", async () => {
  const results = open();
  const leased: { bytes: Buffer }[] = [];
  for (let i = 0; i < 10; i++) {
    write(results, nameOf("a", String(i)), Buffer.alloc(1000, i));
    leased.push((await results.get(nameOf("a", String(i)))) as { bytes: Buffer });
  }
  expect(leased.filter(({ bytes }) => bytes.buffer.byteLength === 1000)).toHaveLength(2);
  expect(new Set(leased.map(({ bytes }) => bytes.buffer)).size).toBe(10);
  for (const [i, { bytes }] of leased.entries()) expect(bytes.equals(Buffer.alloc(1000, i))).toBe(true);
  results.close();
});

it("stays within its limit on disk by evicting the least recently used", async () => {
  const results = open(1000, 1_000_000);
  for (let i = 0; i < 12; i++) {
    write(results, nameOf("a", String(i)), Buffer.alloc(100_000, i));
    await results.get(nameOf("a", "0"));
  }
  const has = async (i: number) => (await results.get(nameOf("a", String(i)))) !== undefined;
  expect([await has(0), await has(1), await has(2), await has(11)]).toEqual([true, false, false, true]);
  await expect.poll(() => existsSync(results.path(nameOf("a", "1")))).toBe(false);
  results.close();
});

it("finds all results after a restart, and deletes other files", async () => {
  const first = open();
  const names = Array.from({ length: 50 }, (_, i) => nameOf("a", String(i)));
  for (const name of names) write(first, name, Buffer.alloc(2000, 7));
  const leftover = `${first.path(nameOf("b", "x"))}.123.tmp`;
  mkdirSync(dirname(leftover), { recursive: true });
  writeFileSync(leftover, "half");
  first.close();
  const second = open();
  for (const name of names) expect((await read(second, name)) as Buffer).toEqual(Buffer.alloc(2000, 7));
  expect(existsSync(leftover)).toBe(false);
  second.close();
});

it("keeps no result of a deleted source, not even one that is being made", async () => {
  const results = open();
  write(results, nameOf("a", "1"), Buffer.alloc(10));
  write(results, nameOf("b", "1"), Buffer.alloc(10));
  await results.get(nameOf("a", "1"));
  await results.purge(hash("a"));
  write(results, nameOf("a", "2"), Buffer.alloc(10), false);
  expect([results.inMemory(nameOf("a", "1")), await results.get(nameOf("a", "2"))]).toEqual([
    undefined,
    undefined,
  ]);
  await expect.poll(() => existsSync(results.path(nameOf("a", "2")))).toBe(false);
  expect(await results.get(nameOf("b", "1"))).toBeDefined();
  results.close();
});

it("deletes the results of one image without a search of the others", async () => {
  const results = open(20_000_000, 100_000_000);
  const others = 20_000;
  for (let each = 0; each < others; each++) results.adopt(nameOf(`${each}`, "1"), 10, () => true);
  const beganMs = cpuMs();
  for (let each = 0; each < 200; each++) await results.purge(hash(`none-${each}`));
  // With a search of all names for each image, this took over a second.
  expect(cpuMs() - beganMs).toBeLessThan(500);
  results.close();
});

it("recreates a file that was removed by hand", async () => {
  const results = open(10);
  write(results, nameOf("a", "1"), Buffer.alloc(1000));
  rmSync(results.path(nameOf("a", "1")));
  expect(await results.get(nameOf("a", "1"))).toBeUndefined();
  results.close();
});
