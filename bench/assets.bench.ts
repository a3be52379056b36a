import { startPeer, startSelvedge } from "./lib/child.ts";
import { load } from "./lib/load.ts";
import { deploySite } from "./lib/site.ts";
import {
  atMost,
  cpuMicroseconds,
  median,
  pairedRatio,
  printGoals,
  printTable,
  reported,
  type Goal,
} from "./lib/measure.ts";

/** Compares CPU time per request for a static asset in memory with plain node:http serving the same bytes from memory. */
const rounds = 9;
const sizes = { "1 KB": 1024, "20 KB": 20 * 1024, "200 KB": 200 * 1024 };
const [count, connections] = [3000, 16];

const peer = await startPeer("static-memory.ts");
const selvedge = await startSelvedge();
const { ready } = selvedge;
const host = await deploySite(ready, Object.values(sizes));

const sides: Record<string, { url: string; pid: number; host: string }> = {
  selvedge: { url: ready.edge, pid: selvedge.pid, host },
  "node:http": { url: `http://127.0.0.1:${peer.port}`, pid: peer.pid, host: "127.0.0.1" },
};
const goals: Goal[] = [];
const rows: (string | number)[][] = [];
for (const [name, bytes] of Object.entries(sizes)) {
  const cpu: Record<string, number[]> = { selvedge: [], "node:http": [] };
  const perSecond: Record<string, number[]> = { selvedge: [], "node:http": [] };
  for (let round = -2; round < rounds; round++) {
    const order = Object.entries(sides);
    for (const [side, { url, pid, host }] of round % 2 === 0 ? order : order.toReversed()) {
      const before = cpuMicroseconds(pid);
      const path = side === "selvedge" ? `/${bytes}.txt` : `/${bytes}`;
      const seconds = await load(url, count, connections, () => ({ method: "GET", path, headers: { host } }));
      if (round < 0) continue; // warm-up
      cpu[side]!.push((cpuMicroseconds(pid) - before) / count);
      perSecond[side]!.push(count / seconds);
    }
  }
  for (const side of Object.keys(sides))
    rows.push([`${name}, ${side}`, median(perSecond[side]!), median(cpu[side]!)]);
  const ratio = pairedRatio(cpu["selvedge"]!, cpu["node:http"]!);
  const what = `CPU per cached asset of ${name}, Selvedge / node:http`;
  goals.push(name === "200 KB" ? reported(what, ratio) : atMost(what, ratio, 1.5));
}
printTable(["", "per second", "CPU µs each"], rows);
printGoals(goals);
await selvedge.stop();
await peer.stop();
