import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { api, benchToken, startPeer, startSelvedge } from "./lib/child.ts";
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
import { defaultFields } from "../src/platform/access-log/fields.ts";
import { proxiedZone } from "./lib/proxied-zone.ts";

/**
 * Compares CPU time per proxied kilobyte with the access log, with a Logpush job of the same fields, and with traces,
 * to the same without them, in alternating rounds. All sides are restarted several times, because two launches of the
 * same program differ by more than the cost of a log.
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
const traces = ["--otlp-endpoint", `http://127.0.0.1:${collector.port}`, "--traces-sampler", "traceidratio"];
const flags = {
  "no log": [],
  "access log": ["--access-log", join(folder, "access.log")],
  "one line in 100": ["--access-log", join(folder, "sampled.log"), "--access-log-one-in", "100"],
  "Logpush job": ["--private-networks", "all", "--logpush-interval-seconds", "2"],
  "disabled Logpush job": ["--private-networks", "all"],
  "1 % of traces": [...traces, "--traces-sampler-arg", "0.01"],
  "all traces": traces,
} as const satisfies Record<string, readonly string[]>;
type Side = keyof typeof flags;
const names = Object.keys(flags) as Side[];

const noneOfEach = (): Record<Side, number[]> => ({
  "no log": [],
  "access log": [],
  "one line in 100": [],
  "Logpush job": [],
  "disabled Logpush job": [],
  "1 % of traces": [],
  "all traces": [],
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
await origin.stop();
await collector.stop();
rmSync(folder, { recursive: true });
printTable(
  ["", "CPU µs each", "ratios of the launches"],
  names.map((side) => [side, median(medians[side]), spread(ratios[side])]),
);
const goals: Goal[] = [
  atMost("CPU per request, access log / none", median(ratios["access log"]), 1.06),
  atMost("CPU per request, one line in 100 / none", median(ratios["one line in 100"]), 1.02),
  atMost("CPU per request, disabled Logpush job / none", median(ratios["disabled Logpush job"]), 1.01),
  atMost("CPU per request, 1 % of traces / none", median(ratios["1 % of traces"]), 1.01),
  atMost("CPU per request, all traces / none", median(ratios["all traces"]), 1.15),
];
goals.push(await scrapeOfManyZones());
goals.push(atMost("CPU per write of a record, audit log / none", await auditRatio(), 1.15));
printGoals(goals);

/** Compares CPU time of creating and changing a record with and without the audit log. */
async function auditRatio(): Promise<number> {
  const found: number[] = [];
  for (let launch = 0; launch < launches; launch++) {
    const sides = [];
    for (const mode of launch % 2 === 0 ? ["on", "off"] : ["off", "on"])
      sides.push({ mode, ...(await recordsOf(await startPeer("audited-api.ts", mode))) });
    const cpu: Record<string, number[]> = { on: [], off: [] };
    for (let round = -warmUpRounds; round < rounds; round++)
      for (const { mode, pid, write } of round % 2 === 0 ? sides : sides.toReversed()) {
        const before = cpuMicroseconds(pid);
        await write();
        if (round >= 0) cpu[mode]!.push((cpuMicroseconds(pid) - before) / writes);
      }
    for (const { stop } of sides) await stop();
    found.push(pairedRatio(cpu["on"]!, cpu["off"]!));
  }
  printTable(["", "ratios of the launches"], [["write of a record, audit log / none", spread(found)]]);
  return median(found);
}

/** The ratios of all launches, the lowest first. */
function spread(found: readonly number[]): string {
  const sorted = found.toSorted((a, b) => a - b);
  return sorted.map((ratio) => ratio.toFixed(3)).join(", ");
}

/** Creates records, and changes one, in equal shares. */
async function recordsOf(peer: Awaited<ReturnType<typeof startPeer>>) {
  const origin = `http://127.0.0.1:${peer.port}`;
  const headers = { authorization: `Bearer ${benchToken}`, "content-type": "application/json" };
  const post = async (path: string, body: object): Promise<string> => {
    const answer = await fetch(`${origin}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
    return ((await answer.json()) as { result: { id: string } }).result.id;
  };
  const zone = await post("/client/v4/zones", { name: "bench.example" });
  const path = `/client/v4/zones/${zone}/dns_records`;
  const first = await post(path, { type: "A", name: "first", content: "192.0.2.1", ttl: 300 });
  let serial = 0;
  const next = () => {
    const isNew = serial++ % 2 === 0;
    const record = {
      type: "A",
      name: isNew ? `r${serial}` : "first",
      content: `192.0.2.${serial % 250}`,
      ttl: 300,
    };
    const body = JSON.stringify(record);
    return isNew
      ? { method: "POST" as const, path, headers, body }
      : { method: "PUT" as const, path: `${path}/${first}`, headers, body };
  };
  return { pid: peer.pid, stop: () => peer.stop(), write: () => load(origin, writes, connections, next) };
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
