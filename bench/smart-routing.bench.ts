import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { Pool } from "undici";
import type { Way } from "../test/helpers/links.ts";
import { api, startPeer, startSelvedge } from "./lib/child.ts";
import { atMost, median, printGoals, printTable, reported, type Goal } from "./lib/measure.ts";
import type { LinkOrder, Ways } from "./peers/links.ts";
import { chart } from "./smart-routing-chart.ts";

/**
 * Measures the gain and the cost of smart routing over slow links: two nodes, two origins and the links, each in its
 * own process. Two zones differ only in the setting and get requests side by side, so that other load affects both.
 */
const perSecond = 40;
const warmUpMs = 4000;
const edgeAddress = "127.0.6.101";
const relayAddress = "127.0.6.102";
const originAddresses = ["127.0.6.1", "127.0.6.2"];
const settings = ["off", "on"] as const;
type Setting = (typeof settings)[number];

/** One way, in milliseconds, from the edge to each origin, to the relay, and from there to each origin. */
interface Topology {
  origins: { fromEdge: Way; fromRelay: Way }[];
  relay: Way;
}
interface Scenario {
  name: string;
  what: string;
  before: Topology;
  seconds: number;
  after?: { atMs: number; topology: Topology };
}
const lossy: Way = { ms: 80, jitterMs: 10, loss: 0.02 };
const equal = { fromEdge: { ms: 60, jitterMs: 2 }, fromRelay: { ms: 48, jitterMs: 2 } };
const good = { fromEdge: { ms: 60, jitterMs: 2 }, fromRelay: { ms: 53 } };
const scenarios: Scenario[] = [
  {
    name: "S0",
    what: "equal paths",
    before: { origins: [equal, equal], relay: { ms: 12 } },
    seconds: 30,
  },
  {
    name: "S1",
    what: "one origin, a relay that is nearer",
    before: { origins: [{ fromEdge: lossy, fromRelay: { ms: 20 } }], relay: { ms: 12 } },
    seconds: 20,
  },
  {
    name: "S2",
    what: "two origins, a relay that is near one",
    before: {
      origins: [
        { fromEdge: lossy, fromRelay: { ms: 20 } },
        { fromEdge: { ms: 60, jitterMs: 5 }, fromRelay: { ms: 90 } },
      ],
      relay: { ms: 12 },
    },
    seconds: 20,
  },
  {
    name: "S3",
    what: "the best path browns out",
    before: { origins: [good], relay: { ms: 12 } },
    after: {
      atMs: 6000,
      topology: { origins: [{ ...good, fromEdge: { ms: 250, loss: 0.1 } }], relay: { ms: 12 } },
    },
    seconds: 18,
  },
];
const rounds = Number(process.env["ROUNDS"] ?? 3);

const origin = await startPeer("counting-origin.ts");
const common = ["--relay-secret", "of the benchmark"];
const relay = await startSelvedge([
  ...common,
  "--edge-tls-listen",
  "127.0.0.1:0",
  "--origin-source-address",
  relayAddress,
]);
const links = await startLinks([
  ...originAddresses.map((listen, index) => ({
    name: `${index}@origins`,
    listen,
    to: { host: "127.0.0.1", port: origin.port },
  })),
  {
    name: "relay@relay",
    listen: "127.0.0.1",
    to: { host: "127.0.0.1", port: Number(new URL(relay.ready.edge_tls!).port) },
  },
]);
const edge = await startSelvedge([
  ...common,
  "--relays",
  `r1=https://127.0.0.1:${links.ports["relay@relay"]}`,
  "--origin-ca",
  relay.ready.tls_authority!,
  "--origin-source-address",
  edgeAddress,
]);

async function startLinks(
  orders: LinkOrder[],
): Promise<{ child: ChildProcess; ports: Record<string, number> }> {
  const child = fork(join(import.meta.dirname, "peers/links.ts"), [JSON.stringify(orders)]);
  const [ports] = (await once(child, "message")) as [Record<string, number>];
  return { child, ports };
}

async function setWays({ origins, relay: toRelay }: Topology): Promise<void> {
  const ways: Ways = { "relay@relay": { any: toRelay } };
  origins.forEach(({ fromEdge, fromRelay }, index) => {
    ways[`${index}@origins`] = { [edgeAddress]: fromEdge, [relayAddress]: fromRelay };
  });
  links.child.send(ways);
  await once(links.child, "message");
}

interface Sample {
  atMs: number;
  ttfbMs: number;
}
interface Side {
  host: string;
  zoneId: string;
}

async function makeZone(name: string, origins: number, value: Setting): Promise<Side> {
  const { id } = await api<{ id: string }>(edge.ready, "POST", "/zones", { name });
  for (const content of originAddresses.slice(0, origins))
    await api(edge.ready, "POST", `/zones/${id}/dns_records`, {
      type: "A",
      name: "www",
      content,
      proxied: true,
    });
  await api(edge.ready, "PUT", `/zones/${id}/rulesets/phases/http_request_origin/entrypoint`, {
    rules: [
      {
        action: "route",
        expression: "true",
        action_parameters: { origin: { port: links.ports["0@origins"] } },
      },
    ],
  });
  await api(edge.ready, "PATCH", `/zones/${id}/edge/smart_routing`, { value });
  return { host: `www.${name}`, zoneId: id };
}

/** Sends requests at a steady rate, whether or not earlier ones have been answered. */
async function ask(side: Side, seconds: number, startMs: number, offsetMs: number): Promise<Sample[]> {
  const pool = new Pool(edge.ready.edge, { connections: 256, pipelining: 1 });
  const samples: Sample[] = [];
  const waiting: Promise<void>[] = [];
  const one = async (): Promise<void> => {
    const atMs = performance.now();
    const request = { method: "GET", path: "/", headers: { host: side.host } } as const;
    const { statusCode, body } = await pool.request(request);
    samples.push({ atMs: atMs - startMs, ttfbMs: performance.now() - atMs });
    if (statusCode !== 200) throw new Error(`status ${statusCode}: ${await body.text()}`);
    await body.dump();
  };
  for (let i = 0; i < seconds * perSecond; i++) {
    await delay(Math.max(0, startMs + offsetMs + (i * 1000) / perSecond - performance.now()));
    waiting.push(one());
  }
  await Promise.all(waiting);
  await pool.close();
  return samples.toSorted((a, b) => a.atMs - b.atMs);
}

const quantile = (samples: readonly Sample[], share: number): number => {
  const sorted = samples.map(({ ttfbMs }) => ttfbMs).toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]!;
};
const counts = async (): Promise<Record<string, number>> =>
  (await (await fetch(`http://127.0.0.1:${origin.port}/counts`)).json()) as Record<string, number>;

/** Time from the change until 19 of 20 requests in every second are fast again. */
function recoveryMs(samples: readonly Sample[], atMs: number, fastMs: number): number {
  const after = samples.filter((sample) => sample.atMs >= atMs);
  const isFast = (fromMs: number): boolean => {
    const second = after.filter((sample) => sample.atMs >= fromMs && sample.atMs < fromMs + 1000);
    return second.filter(({ ttfbMs }) => ttfbMs <= fastMs).length >= second.length * 0.95;
  };
  return (after.find((sample) => isFast(sample.atMs))?.atMs ?? Infinity) - atMs;
}

const results: Record<string, Record<Setting, Sample[]>[]> = {};
const rows: (string | number)[][] = [];
const extra: number[] = [];
const recoveries: number[] = [];
for (let round = 0; round < rounds; round++) {
  for (const { name, before, after, seconds } of scenarios) {
    await setWays(before);
    const sides = {} as Record<Setting, Side>;
    for (const value of settings)
      sides[value] = await makeZone(
        `${value}-${name}-${round}.example`.toLowerCase(),
        before.origins.length,
        value,
      );
    const startMs = performance.now() + 100;
    if (after !== undefined)
      setTimeout(() => void setWays(after.topology), startMs + after.atMs - performance.now());
    const [off, on] = await Promise.all(
      settings.map((value, index) => ask(sides[value], seconds, startMs, (index * 500) / perSecond)),
    );
    const measured = (samples: Sample[]): Sample[] =>
      samples.filter(({ atMs }) => atMs >= (after?.atMs ?? warmUpMs));
    (results[name] ??= []).push({ off: off!, on: on! });
    for (const [setting, samples] of [["off", off!] as const, ["on", on!] as const]) {
      const counted = measured(samples);
      rows.push([`${name} ${setting}`, ...[0.5, 0.9, 0.99].map((share) => quantile(counted, share))]);
    }
    const sent = (await counts())[sides.on.host] ?? 0;
    extra.push((100 * (sent - on!.length)) / on!.length);
    if (after !== undefined) {
      const good = quantile(
        on!.filter(({ atMs }) => atMs > 3000 && atMs < after.atMs),
        0.5,
      );
      recoveries.push(recoveryMs(on!, after.atMs, good * 1.5));
    }
    for (const { zoneId } of Object.values(sides)) await api(edge.ready, "DELETE", `/zones/${zoneId}`);
  }
}

const ratio = (name: string, share: number): number => {
  const scenario = scenarios.find((each) => each.name === name)!;
  const from = scenario.after?.atMs ?? warmUpMs;
  return median(
    results[name]!.map(({ off, on }) => {
      const late = (samples: Sample[]): Sample[] => samples.filter(({ atMs }) => atMs >= from);
      return quantile(late(on), share) / quantile(late(off), share);
    }),
  );
};
printTable(["TTFB, ms", "p50", "p90", "p99"], rows);
const goals: Goal[] = [
  atMost("S0, equal paths: p50 on/off", ratio("S0", 0.5), 1.02),
  atMost("S1, a nearer relay: p50 on/off", ratio("S1", 0.5), 0.6),
  reported("S1: p99 on/off", ratio("S1", 0.99)),
  atMost("S2, two origins and a relay: p50 on/off", ratio("S2", 0.5), 0.6),
  reported("S2: p99 on/off", ratio("S2", 0.99)),
  reported("S3, brown-out: p50 on/off after it", ratio("S3", 0.5)),
  atMost("S3: recovery from the brown-out, ms, worst round", Math.max(...recoveries), 1000),
  atMost("extra origin requests, %, worst run", Math.max(...extra), 5),
];
printGoals(goals);
const chartFile = process.env["CHART"];
if (chartFile !== undefined)
  writeFileSync(
    chartFile,
    chart(
      scenarios.map(({ name, what, after }) => ({
        name,
        what,
        changeMs: after?.atMs,
        ...results[name]![0]!,
      })),
    ),
  );
for (const child of [edge, relay, origin]) await child.stop();
links.child.disconnect();
