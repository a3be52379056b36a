/** Edge processes beside one process that does everything: CPU time of requests and writes, and memory. */
import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { api, startPeer, startSelvedge, type Started } from "./lib/child.ts";
import { load } from "./lib/load.ts";
import { atMost, median, pairedRatio, printGoals, printTable } from "./lib/measure.ts";
import { proxiedZone } from "./lib/proxied-zone.ts";
import { processTree, treeCpuMicroseconds } from "./lib/tree.ts";

const rounds = 9;
const warmUpRounds = 6;
const requests = 2000;
const writes = 100;
const quietMs = 8000;
const connections = 16;

const origin = await startPeer("origin.ts");
const nodes = {
  "one process": await startSelvedge(),
  "one edge process": await startSelvedge(["--edge-processes", "1"]),
  "four edge processes": await startSelvedge(["--edge-processes", "4"]),
};
await delay(quietMs);
const [single, one, four] = Object.values(nodes).map(({ pid }) => ownMegabytes(pid)) as [
  number,
  number,
  number,
];

const measured = Object.values(nodes).map((node) => ({
  node,
  zone: "",
  request: [] as number[],
  write: [] as number[],
}));
for (const each of measured) each.zone = await proxiedZone(each.node.ready, "cores.example", origin.port);
let written = 0;
for (let round = -warmUpRounds; round < rounds; round++) {
  for (const each of round % 2 === 0 ? measured : measured.toReversed()) {
    const request = await cpuOf(each.node, requests, async () => {
      await load(each.node.ready.edge, requests, connections, () => ({
        method: "GET",
        path: "/",
        headers: { host: "www.cores.example" },
      }));
    });
    const write = await cpuOf(each.node, writes, async () => {
      for (let n = 0; n < writes; n++) {
        const record = { type: "A", name: `host-${written++}`, content: "192.0.2.1" };
        await api(each.node.ready, "POST", `/zones/${each.zone}/dns_records`, record);
      }
    });
    if (round < 0) continue;
    each.request.push(request);
    each.write.push(write);
  }
}
for (const { node } of measured) await node.stop();
await origin.stop();

const [ofSingle, ofOne, ofFour] = measured as [Measured, Measured, Measured];
type Measured = (typeof measured)[number];
printTable(
  ["", "MB of its own (PSS), idle", "CPU µs: a proxied request", "a write through the API, all processes"],
  Object.keys(nodes).map((name, i) => [
    name,
    [single, one, four][i]!,
    median(measured[i]!.request),
    median(measured[i]!.write),
  ]),
);
printGoals([
  atMost(
    "CPU of a request, one edge process / one process",
    pairedRatio(ofOne.request, ofSingle.request),
    1.05,
  ),
  atMost("CPU of a request, four edge processes / one", pairedRatio(ofFour.request, ofOne.request), 1.25),
  atMost("a further edge process, MB of its own (PSS)", (four - one) / 3, 75),
]);

/** The CPU time of one of `count` calls, in all processes of a node. */
async function cpuOf({ pid }: Started, count: number, run: () => Promise<void>): Promise<number> {
  const before = treeCpuMicroseconds(pid);
  await run();
  const after = treeCpuMicroseconds(pid);
  return (after.own + after.below - before.own - before.below) / count;
}

function ownMegabytes(pid: number): number {
  const kilobytes = processTree(pid).map((each) =>
    Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${each}/smaps_rollup`, "utf8"))?.[1]),
  );
  return kilobytes.reduce((sum, each) => sum + each, 0) / 1024;
}
