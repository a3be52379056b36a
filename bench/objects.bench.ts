import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { api, benchToken, startPeer, startSelvedge } from "./lib/child.ts";
import { load } from "./lib/load.ts";
import {
  atMost,
  median,
  pairedRatio,
  printGoals,
  printTable,
  reported,
  residentMegabytes,
} from "./lib/measure.ts";
import { processTree, treeCpuMicroseconds } from "./lib/tree.ts";

/*
 * Compares CPU time of requests to Durable Objects with a bare proxy in front of workerd with the same class in a static
 * configuration: from a script, which runs beside its objects after a hundred requests, and from an object that calls
 * another object of its process twenty times. Also: memory of a live object and of an evicted one. The machine's load is
 * printed, because only ratios count.
 */
const rounds = Number(process.env["BENCH_ROUNDS"] ?? 9);
const warmUpRounds = Number(process.env["BENCH_WARM_UP"] ?? 6);
const connections = 8;
const callsEach = 20;
const liveObjects = 300;
/** Times that as many further objects take the place of evicted ones. */
const evictions = 4;
/** Objects are evicted after ten seconds without requests. */
const evictedMs = 15_000;

const code = `import { DurableObject } from "cloudflare:workers";
export class Room extends DurableObject {
  async fetch(request) {
    const { pathname } = new URL(request.url);
    const other = this.env.ROOMS.getByName("other");
    if (pathname === "/fetches") for (let i = 0; i < ${callsEach}; i++) await (await other.fetch("http://object/hello")).text();
    if (pathname === "/calls") for (let i = 0; i < ${callsEach}; i++) await other.hello();
    return new Response("hello");
  }
  hello() { return "hello"; }
  read() { return this.ctx.storage.kv.get("key") ?? "none"; }
  write() { this.ctx.storage.kv.put("key", "value"); return "written"; }
}
export default { async fetch(request, env) {
  const [, what, name] = new URL(request.url).pathname.split("/");
  const room = env.ROOMS.getByName(name);
  if (what === "fetch") return room.fetch("http://object/hello");
  if (what === "fetches" || what === "calls") return room.fetch("http://object/" + what);
  return new Response(await room[what === "call" ? "hello" : what]());
} };`;

const bare = await startPeer("bare-objects.ts", code);
const selvedge = await startSelvedge();
const { ready } = selvedge;
const form = new FormData();
const metadata = {
  main_module: "index.js",
  compatibility_date: "2026-11-01",
  bindings: [{ type: "durable_object_namespace", name: "ROOMS", class_name: "Room" }],
  migrations: { new_tag: "v1", new_sqlite_classes: ["Room"] },
};
form.set("metadata", new Blob([JSON.stringify(metadata)], { type: "application/json" }));
form.set("index.js", new File([code], "index.js", { type: "application/javascript+module" }));
const account = `/accounts/${ready.account_id}`;
const uploaded = await fetch(`${ready.api}${account}/workers/scripts/rooms`, {
  method: "PUT",
  headers: { authorization: `Bearer ${benchToken}` },
  body: form,
});
if (!uploaded.ok) throw new Error(await uploaded.text());
const { subdomain } = await api<{ subdomain: string }>(ready, "GET", `${account}/workers/subdomain`);
const host = `rooms.${subdomain}.workers.localhost`;

const sides = {
  selvedge: { url: ready.edge, host, pid: selvedge.pid },
  bare: { url: `http://127.0.0.1:${bare.port}`, host: "bare", pid: bare.pid },
};
type SideName = keyof typeof sides;
const kinds: Record<string, { count: number; goal: number | undefined }> = {
  fetch: { count: 800, goal: 1.8 },
  call: { count: 800, goal: 1.8 },
  read: { count: 800, goal: undefined },
  write: { count: 400, goal: undefined },
  fetches: { count: 60, goal: 2.2 },
  calls: { count: 60, goal: 2.5 },
};
const names: Record<string, string> = {
  fetch: "fetch of an object, by a script",
  call: "method call, by a script",
  read: "method that reads, called by a script",
  write: "method that writes, called by a script",
  fetches: `${callsEach} fetches of an object of the same process`,
  calls: `${callsEach} method calls of an object of the same process`,
};

const goals = [];
const rows = [];
for (const [kind, { count, goal }] of Object.entries(kinds)) {
  const cpu: Record<SideName, number[]> = { selvedge: [], bare: [] };
  for (let round = -warmUpRounds; round < rounds; round++) {
    const order: SideName[] = round % 2 === 0 ? ["selvedge", "bare"] : ["bare", "selvedge"];
    for (const name of order) {
      const side = sides[name];
      const before = treeCpuMicroseconds(side.pid);
      await load(side.url, count, connections, (index) => ({
        method: "GET",
        path: `/${kind}/o${index % 16}`,
        headers: { host: side.host },
      }));
      const after = treeCpuMicroseconds(side.pid);
      if (round >= 0) cpu[name].push((after.own + after.below - before.own - before.below) / count);
    }
  }
  const ratio = pairedRatio(cpu.selvedge, cpu.bare);
  rows.push([names[kind]!, median(cpu.selvedge), median(cpu.bare), ratio]);
  goals.push(goal === undefined ? reported(names[kind]!, ratio) : atMost(names[kind]!, ratio, goal));
}
printTable(["CPU µs each", "Selvedge", "static", "ratio"], rows);

/** Wakes more objects that write. Resolves with the memory of all cells afterwards. */
async function wake(prefix: string): Promise<number> {
  await load(ready.edge, liveObjects, connections, (index) => ({
    method: "GET",
    path: `/write/${prefix}${index}`,
    headers: { host },
  }));
  return processTree(selvedge.pid)
    .filter((pid) => readFileSync(`/proc/${pid}/comm`, "utf8").trim() === "workerd")
    .reduce((sum, pid) => sum + residentMegabytes(pid) * 1024, 0);
}
const first = await wake("first");
const live = await wake("live");
let again = live;
for (let time = 0; time < evictions; time++) {
  await delay(evictedMs);
  again = await wake(`again${time}`);
}
goals.push(
  atMost("KB of a live object that has written", (live - first) / liveObjects, 512),
  atMost(
    "KB of an evicted object: growth while others take its place",
    Math.max(0, again - live) / (liveObjects * evictions),
    2,
  ),
);
process.stdout.write(`\nload of the machine: ${readFileSync("/proc/loadavg", "utf8")}`);
printGoals(goals);
await selvedge.stop();
await bare.stop();
