import { join } from "node:path";
import { api, benchToken, startPeer, startSelvedge } from "./lib/child.ts";
import { load } from "./lib/load.ts";
import {
  atLeast,
  cpuMicroseconds,
  median,
  pairedRatio,
  printGoals,
  printTable,
  reported,
} from "./lib/measure.ts";

/** Compares reads and writes of a DNS record with a bare handler of the same router that runs one statement. */
const rounds = 7;
const readsPerRound = 4000;
const writesPerRound = 1500;
const connections = 16;

const selvedge = await startSelvedge();
const bare = await startPeer("bare-api.ts", join(selvedge.dataDir, "bare", "bare.db"));
const zone = await api<{ id: string }>(selvedge.ready, "POST", "/zones", { name: "bench.example" });
const record = await api<{ id: string }>(selvedge.ready, "POST", `/zones/${zone.id}/dns_records`, {
  type: "A",
  name: "first",
  content: "192.0.2.1",
  ttl: 300,
});
const base = new URL(selvedge.ready.api);
const headers = { authorization: `Bearer ${benchToken}`, "content-type": "application/json" };
const bareOrigin = `http://127.0.0.1:${bare.port}`;
const barePath = "/record";
const path = `${base.pathname}/zones/${zone.id}/dns_records`;
let serial = 0;
const newRecord = (): string =>
  JSON.stringify({ type: "A", name: `r${serial++}.bench.example`, content: "192.0.2.7", ttl: 300 });

const kinds = {
  read: {
    count: readsPerRound,
    ours: () => ({ method: "GET" as const, path: `${path}/${record.id}`, headers }),
    bare: () => ({ method: "GET" as const, path: barePath, headers }),
  },
  write: {
    count: writesPerRound,
    ours: () => ({ method: "POST" as const, path, headers, body: newRecord() }),
    bare: () => ({ method: "POST" as const, path: barePath, headers, body: newRecord() }),
  },
};
const goals = [];
const rows: (string | number)[][] = [];
for (const [name, { count, ...make }] of Object.entries(kinds)) {
  const perSecond: Record<"ours" | "bare", number[]> = { ours: [], bare: [] };
  const cpu: Record<"ours" | "bare", number[]> = { ours: [], bare: [] };
  const sides = {
    ours: { origin: base.origin, pid: selvedge.pid },
    bare: { origin: bareOrigin, pid: bare.pid },
  };
  for (let round = -1; round < rounds; round++) {
    for (const side of round % 2 === 0 ? (["ours", "bare"] as const) : (["bare", "ours"] as const)) {
      const before = cpuMicroseconds(sides[side].pid);
      const seconds = await load(sides[side].origin, count, connections, make[side]);
      if (round < 0) continue; // warm-up
      perSecond[side].push(count / seconds);
      cpu[side].push((cpuMicroseconds(sides[side].pid) - before) / count);
    }
  }
  for (const side of ["ours", "bare"] as const)
    rows.push([`${name}, ${side}`, median(perSecond[side]), median(cpu[side])]);
  goals.push(atLeast(`${name}s per second, ours / bare`, pairedRatio(perSecond.ours, perSecond.bare), 0.5));
  goals.push(reported(`CPU per ${name}, ours / bare`, pairedRatio(cpu.ours, cpu.bare)));
}
printTable(["", "per second", "CPU µs each"], rows);
printGoals(goals);
await bare.stop();
await selvedge.stop();
