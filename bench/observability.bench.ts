import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  api,
  benchToken,
  startPeer,
  startPlatforms,
  startSelvedge,
  type PlatformOptions,
} from "./lib/child.ts";
import { load } from "./lib/load.ts";
import {
  atMost,
  cpuMicroseconds,
  median,
  pairedRatio,
  printGoals,
  printTable,
  type Goal,
} from "./lib/measure.ts";
import type { Ready } from "../src/ready.ts";
import { defaultFields } from "../src/platform/access-log/fields.ts";
import { proxiedZone } from "./lib/proxied-zone.ts";

/**
 * Compares CPU time per proxied kilobyte with the access log, with a Logpush job of the same fields, and with traces,
 * to the same without them, in alternating rounds; and a write of a record with the audit log to one without it. All
 * sides are restarted several times, because two launches of the same program differ by more than the cost of a log.
 * Traces and the audit log are compared within one process.
 */
const launches = 7;
const rounds = 6;
const warmUpRounds = 5;
const count = 4000;
const writes = 800;
const connections = 16;
const host = "www.bench.example";
const folder = mkdtempSync(join(tmpdir(), "selvedge-bench-"));
const origin = await startPeer("origin.ts");
const collector = await startPeer("collector.ts");
const flags = {
  "no log": [],
  "access log": ["--access-log", join(folder, "access.log")],
  "one line in 100": ["--access-log", join(folder, "sampled.log"), "--access-log-one-in", "100"],
  "Logpush job": ["--private-networks", "all", "--logpush-interval-seconds", "2"],
  "disabled Logpush job": ["--private-networks", "all"],
} as const satisfies Record<string, readonly string[]>;
type Side = keyof typeof flags;
const names = Object.keys(flags) as Side[];

const noneOfEach = (): Record<Side, number[]> => ({
  "no log": [],
  "access log": [],
  "one line in 100": [],
  "Logpush job": [],
  "disabled Logpush job": [],
});
const medians = noneOfEach();
const ratios = noneOfEach();
for (let launch = 0; launch < launches; launch++) {
  const cpu = await measured(launch % 2 === 0 ? names : names.toReversed());
  for (const side of names) {
    medians[side].push(median(cpu[side]));
    ratios[side].push(pairedRatio(cpu[side], cpu["no log"]));
  }
}
rmSync(folder, { recursive: true });
printTable(
  ["", "CPU µs each", "ratios of the launches"],
  names.map((side) => [side, median(medians[side]), spread(ratios[side])]),
);
const goals: Goal[] = [
  atMost("CPU per request, access log / none", median(ratios["access log"]), 1.06),
  atMost("CPU per request, one line in 100 / none", median(ratios["one line in 100"]), 1.02),
  atMost("CPU per request, disabled Logpush job / none", median(ratios["disabled Logpush job"]), 1.01),
];
const traces = await traceRatios();
goals.push(atMost("CPU per request, 1 % of traces / none", traces.few, 1.01));
goals.push(atMost("CPU per request, all traces / none", traces.all, 1.15));
await origin.stop();
await collector.stop();
goals.push(await scrapeOfManyZones());
goals.push(atMost("CPU per write of a record, audit log / none", await auditRatio(), 1.15));
printGoals(goals);

/** Compares CPU time per request with all traces, and with one in a hundred, to the same without traces. */
async function traceRatios(): Promise<Record<"few" | "all", number>> {
  const traced = {
    otlpEndpoint: `http://127.0.0.1:${collector.port}`,
    tracesSampler: "traceidratio",
  } as const;
  const { few, all } = await ratiosInOneProcess(
    { none: {}, few: { ...traced, tracesSamplerArg: "0.01" }, all: traced },
    "none",
    async (ready) => {
      await proxiedZone(ready, "bench.example", origin.port);
      const request = { method: "GET", path: "/1024", headers: { host } } as const;
      return { count, run: async () => load(ready.edge, count, connections, () => request) };
    },
  );
  printTable(
    ["", "ratios of the launches"],
    [
      ["a request, 1 % of traces / none", spread(few)],
      ["a request, all traces / none", spread(all)],
    ],
  );
  return { few: median(few), all: median(all) };
}

/** Compares CPU time of creating and changing a record with and without the audit log. */
async function auditRatio(): Promise<number> {
  const { on } = await ratiosInOneProcess({ on: {}, off: { withoutAudit: true } }, "off", async (ready) => ({
    count: writes,
    run: await recordsOf(ready),
  }));
  printTable(["", "ratios of the launches"], [["write of a record, audit log / none", spread(on)]]);
  return median(on);
}

interface Work {
  count: number;
  run: () => Promise<unknown>;
}

/** The CPU time of each side's work divided by that of `base`, in each launch of one process with all sides. */
async function ratiosInOneProcess<Side extends string>(
  options: Record<Side, PlatformOptions>,
  base: NoInfer<Side>,
  prepare: (ready: Ready) => Promise<Work>,
): Promise<Record<Side, number[]>> {
  const sides = Object.keys(options) as Side[];
  const none = <T>(): Record<Side, T[]> =>
    Object.fromEntries(sides.map((side) => [side, []])) as unknown as Record<Side, T[]>;
  const found = none<number>();
  for (let launch = 0; launch < launches; launch++) {
    const order = launch % 2 === 0 ? sides : sides.toReversed();
    const started = await startPlatforms(order.map((side) => options[side]));
    const works: [Side, Work][] = [];
    for (const [i, side] of order.entries()) works.push([side, await prepare(started.platforms[i]!)]);
    const cpu = none<number>();
    for (let round = -warmUpRounds; round < rounds; round++)
      for (const [side, { count: times, run }] of round % 2 === 0 ? works : works.toReversed()) {
        const before = cpuMicroseconds(started.pid);
        await run();
        if (round >= 0) cpu[side].push((cpuMicroseconds(started.pid) - before) / times);
      }
    await started.stop();
    for (const side of sides) found[side].push(pairedRatio(cpu[side], cpu[base]));
  }
  return found;
}

/** The ratios of all launches, the lowest first. */
function spread(found: readonly number[]): string {
  const sorted = found.toSorted((a, b) => a - b);
  return sorted.map((ratio) => ratio.toFixed(3)).join(", ");
}

/** Work that creates records, and changes one, in equal shares. */
async function recordsOf(ready: Ready): Promise<() => Promise<unknown>> {
  const { origin: at, pathname } = new URL(ready.api);
  const headers = { authorization: `Bearer ${benchToken}`, "content-type": "application/json" };
  const zone = await api<{ id: string }>(ready, "POST", "/zones", { name: "bench.example" });
  const records = `/zones/${zone.id}/dns_records`;
  const old = { type: "A", name: "first", content: "192.0.2.1", ttl: 300 };
  const first = await api<{ id: string }>(ready, "POST", records, old);
  const path = `${pathname}${records}`;
  let serial = 0;
  const next = () => {
    const isNew = serial++ % 2 === 0;
    const name = isNew ? `r${serial}` : "first";
    const body = JSON.stringify({ type: "A", name, content: `192.0.2.${serial % 250}`, ttl: 300 });
    return isNew
      ? { method: "POST" as const, path, headers, body }
      : { method: "PUT" as const, path: `${path}/${first.id}`, headers, body };
  };
  return async () => load(at, writes, connections, next);
}

/** CPU time per request in each round, for sides that are started in the given order. */
async function measured(order: readonly Side[]): Promise<Record<Side, number[]>> {
  const cpu = noneOfEach();
  const sides: [Side, Awaited<ReturnType<typeof edgeWith>>][] = [];
  for (const name of order) sides.push([name, await edgeWith(flags[name])]);
  for (let round = -warmUpRounds; round < rounds; round++) {
    for (const [name, { ready, pid }] of round % 2 === 0 ? sides : sides.toReversed()) {
      const before = cpuMicroseconds(pid);
      await load(ready.edge, count, connections, () => ({ method: "GET", path: "/1024", headers: { host } }));
      if (round >= 0) cpu[name].push((cpuMicroseconds(pid) - before) / count);
    }
  }
  for (const [, side] of sides) await side.stop();
  return cpu;
}

/** The time of a scrape after requests for each of 1,000 zones. */
async function scrapeOfManyZones(): Promise<Goal> {
  const zones = 1000;
  const scrapes = 41;
  const selvedge = await startSelvedge(["--metrics-listen", "127.0.0.1:0"]);
  for (let zone = 0; zone < zones; zone++)
    await api(selvedge.ready, "POST", "/zones", { name: `zone-${zone}.example` });
  // 404: the hosts have no records, so that no origin is measured.
  await load(
    selvedge.ready.edge,
    zones,
    connections,
    (index) => ({
      method: "GET",
      path: "/",
      headers: { host: `www.zone-${index}.example` },
    }),
    404,
  );
  const times: number[] = [];
  let bytes = 0;
  for (let scrape = 0; scrape < scrapes; scrape++) {
    const start = performance.now();
    bytes = (await (await fetch(selvedge.ready.metrics!)).text()).length;
    times.push(performance.now() - start);
  }
  await selvedge.stop();
  printTable(["", "ms", "KB"], [["a scrape with 1,000 zones", median(times), bytes / 1000]]);
  return atMost("ms of a scrape with 1,000 zones", median(times), 50);
}

async function edgeWith(args: readonly string[]): ReturnType<typeof startSelvedge> {
  const selvedge = await startSelvedge(args);
  const zone = await proxiedZone(selvedge.ready, "bench.example", origin.port);
  if (args === flags["Logpush job"] || args === flags["disabled Logpush job"])
    await api(selvedge.ready, "POST", `/zones/${zone}/logpush/jobs`, {
      // The collector answers everything with 200, as a bucket would.
      destination_conf: `s3://bucket/logs?endpoint=http://127.0.0.1:${collector.port}&access-key-id=a&secret-access-key=b`,
      dataset: "http_requests",
      output_options: { field_names: defaultFields },
      enabled: args === flags["Logpush job"],
    });
  return selvedge;
}
