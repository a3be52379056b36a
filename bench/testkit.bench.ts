import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startSelvedge, type Selvedge } from "../src/testkit/start-selvedge.ts";
import { call } from "../test/testkit/helpers.ts";
import { atMost, median, printGoals, reported, residentMegabytes } from "./lib/measure.ts";
import { processTree } from "./lib/tree.ts";

/**
 * The test kit as tests use it: a platform for a file of tests, which is reset before each. A reset is measured with
 * 12,000 rows that it deletes, and with 12,000 of which none, one or all changed.
 */
const records = 12_000;
const resets = 200;
const tests = 100;
const atOnce = 8;

const percentile95 = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length * 0.95)]!;

async function timed(action: () => Promise<unknown>): Promise<number> {
  const startedMs = performance.now();
  await action();
  return performance.now() - startedMs;
}

const newZone = async (edge: Selvedge): Promise<string> => {
  const body = { account: { id: edge.accountId }, name: "shop.example", type: "full" };
  return (await call<{ id: string }>(edge, "POST", "/zones", body)).id;
};

async function fill(edge: Selvedge): Promise<void> {
  const zone = await newZone(edge);
  const lines = Array.from(
    { length: records },
    (_, i) => `n${i} 60 IN A 192.0.${(i >> 8) & 255}.${i & 255}\n`,
  );
  const form = new FormData();
  form.set("file", new File([lines.join("")], "shop.zone"));
  await call(edge, "POST", `/zones/${zone}/dns_records/import`, form);
}

/** The work of a short test: two calls, and a question to the name server. */
async function shortTest(edge: Selvedge): Promise<void> {
  await edge.reset();
  const zone = await newZone(edge);
  const record = { type: "A", name: "www.shop.example", content: "192.0.2.1", ttl: 60 };
  await call(edge, "POST", `/zones/${zone}/dns_records`, record);
  const [address] = await edge.dig("www.shop.example");
  if (address !== "192.0.2.1") throw new Error(`Expected 192.0.2.1 but received ${String(address)}`);
}

const starts: number[] = [];
for (let round = 0; round < 7; round++) {
  const startedMs = performance.now();
  const edge = await startSelvedge();
  starts.push(performance.now() - startedMs);
  await edge.close();
}

let together = 0;
const togetherAndEnded = await timed(async () => {
  const startedMs = performance.now();
  const all = await Promise.all(Array.from({ length: atOnce }, () => startSelvedge()));
  together = performance.now() - startedMs;
  for (const each of all) await each.close();
});

const edge = await startSelvedge();
const [pid] = processTree(process.pid).filter((each) => each !== process.pid);
const sequence = await timed(async () => {
  for (let i = 0; i < tests; i++) await shortTest(edge);
});
const memory = residentMegabytes(pid!);

await edge.reset();
const deleting: number[] = [];
for (let round = 0; round < 10; round++) {
  await fill(edge);
  deleting.push(await timed(() => edge.reset()));
}

await fill(edge);
const folder = mkdtempSync(join(tmpdir(), "selvedge-bench-"));
const file = join(folder, "state");
await edge.save(file);
await edge.close();

const filled = await startSelvedge({ state: file });
rmSync(folder, { recursive: true });
const zoneId = async (): Promise<string> => (await call<{ id: string }[]>(filled, "GET", "/zones"))[0]!.id;

/** Times of resets after a change. */
async function resetsAfter(count: number, change: (zone: string) => Promise<unknown>): Promise<number[]> {
  const times: number[] = [];
  for (let round = 0; round < count; round++) {
    await change(await zoneId());
    times.push(await timed(() => filled.reset()));
  }
  return times;
}
const unchanged = await resetsAfter(resets, async () => {});
const restoring = await resetsAfter(resets, (zone) =>
  call(filled, "PATCH", `/zones/${zone}`, { paused: true }),
);
const edited = await resetsAfter(resets, async (zone) => {
  const [record] = await call<{ id: string }[]>(filled, "GET", `/zones/${zone}/dns_records?per_page=1`);
  await call(filled, "PATCH", `/zones/${zone}/dns_records/${record!.id}`, { content: "192.0.2.200" });
});
const deleted = await resetsAfter(15, (zone) => call(filled, "DELETE", `/zones/${zone}`));
await filled.close();

printGoals([
  atMost("start, s", median(starts) / 1000, 1),
  atMost(`${atOnce} at once: all are ready, s`, together / 1000, 10),
  atMost("  and have ended one after the other, s", togetherAndEnded / 1000, 10),
  atMost(`${tests} tests in sequence, each with a reset, s`, sequence / 1000, 3),
  atMost(`reset that deletes ${records} rows, ms`, median(deleting), 10),
  atMost(`reset with ${records} rows, none of them changed, ms`, median(unchanged), 10),
  atMost("  a zone changed: median, ms", median(restoring), 10),
  atMost("  95th percentile, ms", percentile95(restoring), 10),
  atMost("  a record changed, ms", median(edited), 10),
  reported("  all deleted and brought back, ms", median(deleted)),
  atMost("memory of a platform after the tests, MB", memory, 160),
]);
