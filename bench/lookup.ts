import { EdgeSnapshot, EdgeZone } from "../src/edge/configuration/snapshot.ts";
import { atMost, median, pairedRatio, printGoals, printTable, reported, type Goal } from "./lib/measure.ts";

const rounds = 21;
const lookUpsPerRound = 200_000;
const changesPerRound = 20_000;

interface Side {
  name: string;
  zones: number;
  perZone: number;
  snapshot: EdgeSnapshot;
}
const hostOf = (zone: number, record: number): string => `host-${record}.zone-${zone}.example`;
const target = { isProxied: true, targets: [{ type: "A" as const, content: "192.0.2.1" }] };

function side(zones: number, perZone: number): Side {
  const snapshot = new EdgeSnapshot();
  for (let z = 0; z < zones; z++) {
    const zone = new EdgeZone(String(z), `zone-${z}.example`, false);
    for (let r = 0; r < perZone; r++) zone.setHost(hostOf(z, r), target);
    snapshot.add(zone);
  }
  return { name: `${zones} zones of ${perZone}`, zones, perZone, snapshot };
}

/** Hosts as the parser makes them, each its own string; `count` of them, drawn from all records by a fixed sequence. */
function hostsOf({ zones, perZone }: Side, count: number): string[] {
  let state = 1;
  return Array.from({ length: count }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    const record = Math.floor((state / 2 ** 32) * zones * perZone);
    return Buffer.from(hostOf(Math.floor(record / perZone), record % perZone)).toString("latin1");
  });
}

function nanosecondsPerLookUp({ snapshot }: Side, hosts: readonly string[]): number {
  let found = 0;
  const start = process.hrtime.bigint();
  for (let i = 0; i < lookUpsPerRound; i++) {
    const host = hosts[i % hosts.length]!;
    if (snapshot.findZone(host)?.resolve(host) !== undefined) found += 1;
  }
  const elapsed = Number(process.hrtime.bigint() - start);
  if (found !== lookUpsPerRound) throw new Error("a host was not found");
  return elapsed / lookUpsPerRound;
}

function nanosecondsPerChange({ snapshot, perZone }: Side): number {
  const zone = snapshot.get("0")!;
  const start = process.hrtime.bigint();
  for (let i = 0; i < changesPerRound; i++) {
    const host = hostOf(0, i % perZone);
    zone.setHost(host, undefined);
    zone.setHost(host, target);
  }
  return Number(process.hrtime.bigint() - start) / changesPerRound / 2;
}

/** The cost of finding a host, and of changing one, by the number of zones and of records. */
export default async function lookup(): Promise<void> {
  const many = side(1000, 100);
  const few = side(10, 10_000);
  const small = side(10, 100);
  const sides = [many, few, small];
  const rows: (string | number)[][] = [];
  const goals: Goal[] = [];
  const measure = (what: string, once: (each: Side) => number): Map<Side, number[]> => {
    const times = new Map(sides.map((each) => [each, [] as number[]]));
    for (let round = -3; round < rounds; round++) {
      for (const each of round % 2 === 0 ? sides : sides.toReversed()) {
        const ns = once(each);
        if (round >= 0) times.get(each)!.push(ns); // those before are warm-up
      }
    }
    for (const each of sides) rows.push([`${what}, ${each.name}`, median(times.get(each)!)]);
    return times;
  };
  const spread = new Map(sides.map((each) => [each, hostsOf(each, 100_000)]));
  const all = measure("any host", (each) => nanosecondsPerLookUp(each, spread.get(each)!));
  const hotHosts = new Map(sides.map((each) => [each, hostsOf(each, 1000)]));
  const hot = measure("one of 1,000 hosts", (each) => nanosecondsPerLookUp(each, hotHosts.get(each)!));
  const change = measure("a change of one host", nanosecondsPerChange);
  const ratio = (times: Map<Side, number[]>, to: Side): number =>
    pairedRatio(times.get(many)!, times.get(to)!);
  goals.push(
    atMost("100,000 records, any host: 1,000 zones / 10 zones", ratio(all, few), 1.5),
    reported("the same, one of 1,000 hosts (more tables, so colder processor caches)", ratio(hot, few)),
    reported("100,000 records / 1,000 records, any host (processor caches)", ratio(all, small)),
    atMost("a change of one host: 1,000 zones / 10 zones of 100 times the size", ratio(change, few), 1.5),
  );
  printTable(["", "ns each"], rows);
  printGoals(goals);
}

if (import.meta.main) await lookup();
