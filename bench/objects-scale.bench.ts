import { setTimeout as delay } from "node:timers/promises";
import { request } from "undici";
import { WebSocket } from "ws";
import { api, benchToken, startSelvedge } from "./lib/child.ts";
import { load } from "./lib/load.ts";
import { treeCpuMicroseconds } from "./lib/tree.ts";
import { atLeast, atMost, printGoals, printTable, reported } from "./lib/measure.ts";

/*
 * Many objects: the lateness of 10,000 alarms that are due within 20 seconds, as their handlers see it, and 1,000 idle
 * WebSockets on 100 objects, which are then not in memory.
 */
const alarmObjects = Number(process.env["BENCH_ALARM_OBJECTS"] ?? 500);
const alarmsEach = 20;
const everyMs = 1000;
const socketObjects = 100;
const socketsEach = 10;
/** Objects are evicted ten seconds after their last event. */
const idleMsMax = 40_000;

const code = `import { DurableObject } from "cloudflare:workers";
export class Clock extends DurableObject {
  begin(at) {
    this.ctx.storage.kv.put("next", { at, left: ${alarmsEach} });
    this.ctx.storage.setAlarm(at);
    return "set";
  }
  alarm() {
    const { at, left } = this.ctx.storage.kv.get("next");
    this.ctx.storage.kv.put("late", [...(this.ctx.storage.kv.get("late") ?? []), Date.now() - at]);
    if (left === 1) return;
    this.ctx.storage.kv.put("next", { at: at + ${everyMs}, left: left - 1 });
    this.ctx.storage.setAlarm(at + ${everyMs});
  }
  late() { return this.ctx.storage.kv.get("late") ?? []; }
  fetch() {
    const [client, server] = Object.values(new WebSocketPair());
    this.ctx.acceptWebSocket(server);
    return new Response(null, { status: 101, webSocket: client });
  }
  webSocketMessage(socket, text) { socket.send(text); }
}
export default { async fetch(request, env) {
  const { pathname, searchParams } = new URL(request.url);
  const [, what, name] = pathname.split("/");
  const clock = env.CLOCKS.getByName(name);
  if (what === "socket") return clock.fetch(request);
  return Response.json(await clock[what](Number(searchParams.get("at"))));
} };`;

const selvedge = await startSelvedge(["--metrics-listen", "127.0.0.1:0"]);
const { ready } = selvedge;
const form = new FormData();
const metadata = {
  main_module: "index.js",
  compatibility_date: "2026-11-01",
  bindings: [{ type: "durable_object_namespace", name: "CLOCKS", class_name: "Clock" }],
  migrations: { new_tag: "v1", new_sqlite_classes: ["Clock"] },
};
form.set("metadata", new Blob([JSON.stringify(metadata)], { type: "application/json" }));
form.set("index.js", new File([code], "index.js", { type: "application/javascript+module" }));
const account = `/accounts/${ready.account_id}`;
const uploaded = await fetch(`${ready.api}${account}/workers/scripts/clocks`, {
  method: "PUT",
  headers: { authorization: `Bearer ${benchToken}` },
  body: form,
});
if (!uploaded.ok) throw new Error(await uploaded.text());
const { subdomain } = await api<{ subdomain: string }>(ready, "GET", `${account}/workers/subdomain`);
const host = `clocks.${subdomain}.workers.localhost`;

async function metric(name: string): Promise<number> {
  const text = await (await fetch(ready.metrics!)).text();
  const found = text.split("\n").find((line) => line.startsWith(`selvedge_${name} `));
  return Number(found?.split(" ").at(-1));
}

// All objects are awake before the first alarm is due, which is at a different time for each.
const from = Date.now() + 15_000;
await load(ready.edge, alarmObjects, 8, (index) => ({
  method: "GET",
  path: `/begin/c${index}?at=${from + Math.round((index * everyMs) / alarmObjects)}`,
  headers: { host },
}));
await delay(Math.max(0, from - Date.now()));
const before = treeCpuMicroseconds(selvedge.pid);
await delay(alarmsEach * everyMs);
const ran = async (): Promise<number> => metric(`alarm_runs_total{result="ran"}`);
for (let tries = 0; (await ran()) < alarmObjects * alarmsEach && tries < 300; tries++) await delay(500);
const after = treeCpuMicroseconds(selvedge.pid);
const cpuOf = (part: "own" | "below"): number => (after[part] - before[part]) / (alarmObjects * alarmsEach);
const late: number[] = [];
for (let index = 0; index < alarmObjects; index++) {
  const ask = async (): Promise<number[]> => {
    const { body } = await request(`${ready.edge}/late/c${index}`, { headers: { host } });
    return (await body.json()) as number[];
  };
  let found = await ask();
  for (let tries = 0; found.length < alarmsEach && tries < 300; tries++) {
    await delay(100);
    found = await ask();
  }
  late.push(...found);
}
late.sort((a, b) => a - b);
const quantile = (share: number): number => late[Math.min(late.length - 1, Math.floor(late.length * share))]!;
printTable(
  ["alarms", "ms late, p50", "p99", "latest", "CPU µs of main for each", "of cells"],
  [[String(late.length), quantile(0.5), quantile(0.99), late.at(-1)!, cpuOf("own"), cpuOf("below")]],
);

const sockets: WebSocket[] = [];
for (let index = 0; index < socketObjects * socketsEach; index++) {
  const url = `${ready.edge.replace("http", "ws")}/socket/s${index % socketObjects}`;
  const socket = new WebSocket(url, { headers: { host } });
  await new Promise((resolve, reject) => socket.once("open", resolve).once("error", reject));
  sockets.push(socket);
}
const idleFrom = Date.now();
let live = await metric("objects_live");
const liveAtFirst = live;
while (live > 0 && Date.now() - idleFrom < idleMsMax) {
  await delay(500);
  live = await metric("objects_live");
}
const answers = sockets.map(
  (socket, index) =>
    new Promise<boolean>((resolve) =>
      socket.once("message", (data: Buffer) => resolve(data.toString() === `m${index}`)),
    ),
);
for (const [index, socket] of sockets.entries()) socket.send(`m${index}`);
const answered = (await Promise.all(answers)).filter(Boolean).length;
for (const socket of sockets) socket.terminate();

printGoals([
  atMost("alarms: late by, ms p99", quantile(0.99), 500),
  atLeast("alarms that ran", late.length, alarmObjects * alarmsEach),
  reported("live objects with 1,000 new sockets", liveAtFirst),
  atMost("live objects with 1,000 idle sockets", live, 0),
  atLeast("sockets that answered after their object slept", answered, socketObjects * socketsEach),
]);
await selvedge.stop();
