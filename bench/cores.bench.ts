/** Compares edge processes with one process that does everything: CPU time of requests and writes, and memory. */
import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { api, startPeer, startSelvedge, type Started } from "./lib/child.ts";
import { photo } from "./images-lib.ts";
import {
  atLeast,
  atMost,
  cpuMicroseconds,
  median,
  pairedRatio,
  printGoals,
  printTable,
  reported,
} from "./lib/measure.ts";
import { load } from "./lib/load.ts";
import { prepared, type Kind } from "./lib/planes.ts";
import { deploySite } from "./lib/site.ts";
import { proxiedZone } from "./lib/proxied-zone.ts";
import { processTree, treeCpuMicroseconds } from "./lib/tree.ts";

const rounds = 9;
/** V8 is still compiling hot code during a process's first ten thousand requests or so. */
const warmUpRounds = 4;
const proxied = 12_000;
/** With few connections, each of two processes handles few requests per event loop turn, so each request costs more. */
const connections = { few: 16, many: 64 };
const writes = 100;
const quietMs = 8000;
/** Requests per second are compared only on machines with spare cores for the load generator and the origin. */
const coresForThroughput = 6;

const origin = await startPeer("origin.ts");
const picture = await photo(1200, 900);
const started = {
  single: await startSelvedge(),
  one: await startSelvedge(["--edge-processes", "1"]),
  two: await startSelvedge(["--edge-processes", "2"]),
  four: await startSelvedge(["--edge-processes", "4"]),
};
type Name = keyof typeof started;
await delay(quietMs);
const megabytes = Object.fromEntries(
  Object.entries(started).map(([name, { pid }]) => [name, ownMegabytes(pid)]),
) as Record<Name, number>;

const plain = "a proxied kilobyte";
const plainFew = "a proxied kilobyte, few connections";
const asset = "a static asset";
const otherKinds = [
  "a snippet's kilobyte",
  "a script",
  "a dispatched script",
  asset,
  "an image from the cache",
];
const kindNames = [plain, plainFew, ...otherKinds];
const isPlain = (kind: string): boolean => kind === plain || kind === plainFew;
const kinds = new Map<Name, Record<string, Kind>>();
for (const name of ["single", "one", "two"] as const) {
  const { edge } = started[name].ready;
  const headers = { host: "www.plain.example" };
  const visit =
    (count: number) =>
    async (requests: number): Promise<number> =>
      load(edge, requests, count, () => ({ method: "GET", path: "/1024", headers }));
  const { kinds: others } = await prepared(started[name], origin.port, picture);
  const few = { count: proxied, run: visit(connections.few) };
  const site = await deploySite(started[name].ready, [1024]);
  const request = { method: "GET", path: "/1024.txt", headers: { host: site } } as const;
  const assets = async (requests: number): Promise<number> =>
    load(edge, requests, connections.few, () => request);
  kinds.set(name, {
    ...others,
    [asset]: { count: proxied, run: assets },
    [plain]: { count: proxied, run: visit(connections.many) },
    [plainFew]: few,
  });
}
const zones = new Map<Name, string>();
for (const name of ["single", "four"] as const)
  zones.set(name, await proxiedZone(started[name].ready, "writes.example", origin.port));

/** CPU µs of a request, by kind and node. */
const cpu = new Map<string, number[]>();
const perSecond = new Map<Name, number[]>();
const write = new Map<Name, { main: number[]; all: number[]; ms: number[] }>();
for (let round = -warmUpRounds; round < rounds; round++) {
  const inTurn = <T>(names: readonly T[]): readonly T[] => (round % 2 === 0 ? names : names.toReversed());
  for (const kind of kindNames)
    for (const name of inTurn<Name>(isPlain(kind) ? ["single", "one", "two"] : ["single", "one"])) {
      const { count, run } = kinds.get(name)![kind]!;
      const { spent, seconds } = await cpuOf(started[name], count, async () => run(count));
      if (round < 0) continue;
      push(cpu, `${kind} ${name}`, spent.all);
      if (kind === plain) push(perSecond, name, count / seconds);
    }
  for (const name of inTurn<Name>(["single", "four"])) {
    const ms: number[] = [];
    const { spent } = await cpuOf(started[name], writes, async () => {
      for (let n = 0; n < writes; n++) ms.push(await writeOne(name));
    });
    if (round < 0) continue;
    const figures = write.get(name) ?? { main: [], all: [], ms: [] };
    write.set(name, figures);
    figures.main.push(spent.main);
    figures.all.push(spent.all);
    figures.ms.push(median(ms));
  }
}
for (const node of Object.values(started)) await node.stop();
await origin.stop();

const of = (kind: string, name: Name): number[] => cpu.get(`${kind} ${name}`)!;
printTable(
  ["CPU µs of a request, all processes", "one process", "one edge process", "two edge processes"],
  kindNames.map((kind) => [
    kind,
    ...(["single", "one"] as const).map((name) => median(of(kind, name))),
    isPlain(kind) ? median(of(kind, "two")) : "",
  ]),
);
printTable(
  ["", "one process", "four edge processes"],
  (["main", "all", "ms"] as const).map((figure) => [
    { main: "CPU µs of a write, main", all: "CPU µs of a write, all processes", ms: "p50 of a write, ms" }[
      figure
    ],
    ...(["single", "four"] as const).map((name) => median(write.get(name)![figure])),
  ]),
);
const throughput = "requests per second, two edge processes / one";
const gained = pairedRatio(perSecond.get("two")!, perSecond.get("one")!);
const [alone, beside] = [write.get("single")!, write.get("four")!];
printGoals([
  ...kindNames.map((kind) =>
    atMost(
      `CPU of ${kind}, one edge process / one process`,
      pairedRatio(of(kind, "one"), of(kind, "single")),
      1.05,
    ),
  ),
  atMost(`CPU of ${plain}, two edge processes / one`, pairedRatio(of(plain, "two"), of(plain, "one")), 1.25),
  reported(
    `CPU of ${plainFew}, two edge processes / one`,
    pairedRatio(of(plainFew, "two"), of(plainFew, "one")),
  ),
  availableParallelism() >= coresForThroughput
    ? atLeast(throughput, gained, 1.7)
    : reported(throughput, gained),
  atMost(
    "CPU of main for a write, four edge processes / one process",
    pairedRatio(beside.main, alone.main),
    1.15,
  ),
  atMost(
    "p50 of a write, four edge processes - one process, ms",
    median(difference(beside.ms, alone.ms)),
    0.5,
  ),
  atMost("a further edge process, MB of its own (PSS)", (megabytes.four - megabytes.one) / 3, 75),
]);

function difference(a: readonly number[], b: readonly number[]): number[] {
  return a.map((value, index) => value - b[index]!);
}

function push<K>(lists: Map<K, number[]>, key: K, value: number): void {
  lists.set(key, [...(lists.get(key) ?? []), value]);
}

/** Milliseconds of a call that adds a record. */
async function writeOne(name: Name): Promise<number> {
  const startMs = performance.now();
  const record = { type: "A", name: `host-${startMs.toString(36).replace(".", "-")}`, content: "192.0.2.1" };
  await api(started[name].ready, "POST", `/zones/${zones.get(name)!}/dns_records`, record);
  return performance.now() - startMs;
}

/** CPU time per call, averaged over `count` calls: in all processes of a node, and in main. */
async function cpuOf(
  { pid }: Started,
  count: number,
  run: () => Promise<unknown>,
): Promise<{ spent: { all: number; main: number }; seconds: number }> {
  const now = (): { all: number; main: number } => {
    const { own, below } = treeCpuMicroseconds(pid);
    return { all: own + below, main: cpuMicroseconds(mainOf(pid)) };
  };
  const startMs = performance.now();
  const before = now();
  await run();
  const after = now();
  const seconds = (performance.now() - startMs) / 1000;
  return {
    spent: { all: (after.all - before.all) / count, main: (after.main - before.main) / count },
    seconds,
  };
}

/** Finds the main process of a node, the only one that writes. */
function mainOf(pid: number): number {
  return processTree(pid).find((each) => /"role":"main"/.test(environmentOf(each))) ?? pid;
}

function environmentOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/environ`, "utf8");
  } catch {
    return ""; // it has ended
  }
}

function ownMegabytes(pid: number): number {
  const kilobytes = processTree(pid).map((each) =>
    Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${each}/smaps_rollup`, "utf8"))?.[1]),
  );
  return kilobytes.reduce((sum, each) => sum + each, 0) / 1024;
}
