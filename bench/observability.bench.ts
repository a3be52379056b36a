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
import { Connections, load, type Request } from "./lib/load.ts";
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
 * to the same without them; and a write of a record with the audit log to one without it. Sides that are compared are
 * platforms in one process, because two launches of the same program differ by more than the cost of a log. Rounds are
 * short and in turns, with another side first in each. All is started several times.
 */
const launches = 5;
const rounds = 40;
const warmUpRounds = 20;
const count = 1000;
const writes = 200;
const connections = 16;
const host = "www.bench.example";
const folder = mkdtempSync(join(tmpdir(), "selvedge-bench-"));
const origin = await startPeer("origin.ts");
const collector = await startPeer("collector.ts");
const collectorUrl = `http://127.0.0.1:${collector.port}`;
const traced = { otlpEndpoint: collectorUrl, tracesSampler: "traceidratio" } as const;

const logs = await compare(
  {
    "no log": {},
    "access log": { accessLog: join(folder, "access.log") },
    "one line in 100": { accessLog: join(folder, "sampled.log"), accessLogOneIn: 100 },
  },
  "no log",
  proxiedKilobyte(),
);
const shipping = { privateNetworks: "all", logpushIntervalSeconds: 2 } as const;
const job = await compare({ "no log": {}, "Logpush job": shipping }, "no log", proxiedKilobyte(true));
const noJob = await compare(
  { "no log": {}, "disabled Logpush job": shipping },
  "no log",
  proxiedKilobyte(false),
);
// Each alone, because spans that wait are sent in a later round, perhaps one of another side.
const few = await compare(
  { "no traces": {}, "1 % of traces": { ...traced, tracesSamplerArg: "0.01" } },
  "no traces",
  proxiedKilobyte(),
);
const all = await compare({ "no traces": {}, "all traces": traced }, "no traces", proxiedKilobyte());
const audit = await compare(
  { "no audit log": { withoutAudit: true }, "audit log": {} },
  "no audit log",
  recordsOf,
);
rmSync(folder, { recursive: true });
const measured = { ...job, ...noJob, ...logs, ...few, ...all, ...audit };
printTable(
  ["", "CPU µs each", "ratios of the launches"],
  Object.entries(measured).map(([side, { us, ratios }]) => [side, median(us), spread(ratios)]),
);
const ratio = (side: keyof typeof measured): number => median(measured[side].ratios);
const goals: Goal[] = [
  atMost("CPU per request, access log / none", ratio("access log"), 1.06),
  atMost("CPU per request, one line in 100 / none", ratio("one line in 100"), 1.02),
  atMost("CPU per request, disabled Logpush job / none", ratio("disabled Logpush job"), 1.01),
  atMost("CPU per request, 1 % of traces / none", ratio("1 % of traces"), 1.01),
  atMost("CPU per request, all traces / none", ratio("all traces"), 1.15),
  atMost("CPU per write of a record, audit log / none", ratio("audit log"), 1.15),
];
await origin.stop();
await collector.stop();
goals.push(await scrapeOfManyZones());
printGoals(goals);

interface Work {
  open: Connections;
  count: number;
  next: () => Request;
}

/** CPU time of a side in each launch, and its ratio to that of the base. */
interface Figures {
  us: number[];
  ratios: number[];
}

/** Compares sides in one process, which is started for each launch. */
async function compare<Side extends string>(
  options: Record<Side, PlatformOptions>,
  base: NoInfer<Side>,
  prepare: (ready: Ready, side: string) => Promise<Work>,
): Promise<Record<Side, Figures>> {
  const sides = Object.keys(options) as Side[];
  const found = Object.fromEntries(sides.map((side) => [side, { us: [], ratios: [] }])) as unknown as Record<
    Side,
    Figures
  >;
  for (let launch = 0; launch < launches; launch++) {
    const order = launch % 2 === 0 ? sides : sides.toReversed();
    const started = await startPlatforms(order.map((side) => options[side]));
    const works: [Side, Work][] = [];
    for (const [i, side] of order.entries()) works.push([side, await prepare(started.platforms[i]!, side)]);
    const cpu = Object.fromEntries(sides.map((side) => [side, []])) as unknown as Record<Side, number[]>;
    for (let round = -warmUpRounds; round < rounds; round++) {
      const first = (round + warmUpRounds) % works.length;
      const turns = [...works.slice(first), ...works.slice(0, first)];
      for (const [side, work] of round % 4 < 2 ? turns : turns.toReversed()) {
        const before = cpuMicroseconds(started.pid);
        await work.open.load(work.count, work.next);
        if (round >= 0) cpu[side].push((cpuMicroseconds(started.pid) - before) / work.count);
      }
    }
    for (const [, { open }] of works) await open.close();
    await started.stop();
    for (const side of sides) {
      found[side].us.push(median(cpu[side]));
      found[side].ratios.push(pairedRatio(cpu[side], cpu[base]));
    }
  }
  return found;
}

/** Requests for a proxied kilobyte. With Logpush, the side that is named after it has a job, which is enabled or not. */
function proxiedKilobyte(isEnabled?: boolean): (ready: Ready, side: string) => Promise<Work> {
  return async (ready, side) => {
    const zone = await proxiedZone(ready, "bench.example", origin.port);
    if (side.includes("Logpush"))
      await api(ready, "POST", `/zones/${zone}/logpush/jobs`, {
        // The collector answers everything with 200, as a bucket would.
        destination_conf: `s3://bucket/logs?endpoint=${collectorUrl}&access-key-id=a&secret-access-key=b`,
        dataset: "http_requests",
        output_options: { field_names: defaultFields },
        enabled: isEnabled,
      });
    const request = { method: "GET", path: "/1024", headers: { host } } as const;
    return { open: new Connections(ready.edge, connections), count, next: () => request };
  };
}

/** The ratios of all launches, the lowest first. */
function spread(found: readonly number[]): string {
  const sorted = found.toSorted((a, b) => a - b);
  return sorted.map((ratio) => ratio.toFixed(3)).join(", ");
}

/** Work that creates records, and changes one, in equal shares. */
async function recordsOf(ready: Ready): Promise<Work> {
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
  return { open: new Connections(at, connections), count: writes, next };
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
