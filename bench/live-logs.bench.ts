import { api, benchToken, startSelvedge } from "./lib/child.ts";
import { load } from "./lib/load.ts";
import {
  atMost,
  cpuMicroseconds,
  median,
  pairedRatio,
  printGoals,
  printTable,
  reported,
} from "./lib/measure.ts";

/** CPU time of the gateway per request to a script: without a live log, with one of another script, and with its own. */
const rounds = 9;
const [count, connections] = [1500, 16];
const code = `export default { fetch(request) { console.log("asked", request.url); return new Response("ok"); } };`;

const selvedge = await startSelvedge();
const { ready, pid } = selvedge;
const account = `/accounts/${ready.account_id}`;
for (const name of ["asked", "other"]) await deploy(name);
const { subdomain } = await api<{ subdomain: string }>(ready, "GET", `${account}/workers/subdomain`);
const host = `asked.${subdomain}.workers.localhost`;

const watched = { nobody: undefined, "another script": "other", "this script": "asked" };
type Side = keyof typeof watched;
const cpu: Record<Side, number[]> = { nobody: [], "another script": [], "this script": [] };
const perSecond: Record<Side, number[]> = { nobody: [], "another script": [], "this script": [] };
for (let round = -2; round < rounds; round++) {
  const order = Object.entries(watched) as [Side, string | undefined][];
  for (const [side, script] of round % 2 === 0 ? order : order.toReversed()) {
    const socket = script === undefined ? undefined : await watch(script);
    const before = cpuMicroseconds(pid);
    const request = () => ({ method: "GET", path: "/", headers: { host } }) as const;
    const seconds = await load(ready.edge, count, connections, request);
    const used = cpuMicroseconds(pid) - before;
    socket?.close();
    if (round < 0) continue; // warm-up
    cpu[side].push(used / count);
    perSecond[side].push(count / seconds);
  }
}
printTable(
  ["watched", "per second", "CPU µs each, gateway"],
  order().map((side) => [side, median(perSecond[side]), median(cpu[side])]),
);
printGoals([
  atMost("CPU, another script watched / none", pairedRatio(cpu["another script"], cpu["nobody"]), 1.1),
  reported("CPU, this script watched / none", pairedRatio(cpu["this script"], cpu["nobody"])),
]);
await selvedge.stop();

function order(): Side[] {
  return Object.keys(watched) as Side[];
}

async function deploy(name: string): Promise<void> {
  const form = new FormData();
  form.set("metadata", JSON.stringify({ main_module: "m.js", compatibility_date: "2026-01-01" }));
  form.set("m.js", new File([code], "m.js", { type: "application/javascript+module" }));
  const response = await fetch(`${ready.api}${account}/workers/scripts/${name}`, {
    method: "PUT",
    headers: { authorization: `Bearer ${benchToken}` },
    body: form,
  });
  if (!response.ok) throw new Error(await response.text());
}

async function watch(script: string): Promise<WebSocket> {
  const { url } = await api<{ url: string }>(ready, "POST", `${account}/workers/scripts/${script}/tails`, {});
  const socket = new WebSocket(url, "trace-v1");
  await new Promise((resolve, reject) => {
    socket.addEventListener("open", resolve, { once: true });
    socket.addEventListener("error", reject, { once: true });
  });
  return socket;
}
