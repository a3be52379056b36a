import { readFileSync } from "node:fs";
import { Cell } from "../src/sandbox/cell.ts";
import { cellDefaults } from "../src/sandbox/settings.ts";
import { api, benchToken, startPeer, startSelvedge } from "./lib/child.ts";
import { load } from "./lib/load.ts";
import { proxiedZone } from "./lib/proxied-zone.ts";
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

/** The cost of a snippet: CPU time compared with bare workerd running the same module, and its cold start. */
const rounds = 11;
const code = `export default {
  async fetch(request) {
    const response = await fetch(request);
    const changed = new Response(response.body, response);
    changed.headers.set("x-from", "snippet");
    return changed;
  },
};
`;

const origin = await startPeer("origin.ts");
const workerd = await startPeer("bare-workerd.ts", String(origin.port), code);
const bare = await startPeer("bare-proxy.ts", String(workerd.port));
const selvedge = await startSelvedge();
const goals: Goal[] = [];

const zoneId = await proxiedZone(selvedge.ready, "bench.example", origin.port);
await addSnippet("headers", code);
await setRules(["headers"]);
const rows = await compare(
  {
    "snippet, Selvedge": { url: selvedge.ready.edge, pids: () => family(selvedge.pid) },
    "snippet, bare": { url: `http://127.0.0.1:${bare.port}`, pids: () => [bare.pid, ...family(workerd.pid)] },
  },
  "www.bench.example",
  (ratio) => atMost("CPU of a header-setting snippet, Selvedge / bare workerd", ratio, 1.5),
);

const colds: number[] = [];
for (let i = 0; i < 20; i++) {
  // A new module each time, so that nothing of it is loaded or compiled yet.
  await addSnippet("headers", `${code}// ${i}\n`);
  colds.push(await timeMs(visit));
}
const warms: number[] = [];
for (let i = 0; i < 50; i++) warms.push(await timeMs(visit));
goals.push(reported("cold start of a snippet: first answer, ms", median(colds)));
goals.push(reported("an answer of a snippet that is loaded, ms", median(warms)));
await selvedge.stop();
for (const peer of [bare, workerd]) await peer.stop();

const plain = await startPeer("edge.ts", "without", String(origin.port));
const ready = await startPeer("edge.ts", "with", String(origin.port));
rows.push(
  ...(await compare(
    {
      "zone without snippets": { url: `http://127.0.0.1:${ready.port}`, pids: () => [ready.pid] },
      "edge that knows no snippets": { url: `http://127.0.0.1:${plain.port}`, pids: () => [plain.pid] },
    },
    "www.bench.example",
    (ratio) => atMost("CPU of a zone without snippets / of the proxy path alone", ratio, 1.03),
  )),
);
for (const peer of [plain, ready, origin]) await peer.stop();

const boots: number[] = [];
const cells: Cell[] = [];
for (let id = 0; id < 15; id++)
  boots.push(await timeMs(async () => void cells.push(await Cell.boot(id, cellDefaults, () => {}))));
for (const cell of cells) cell.close();
goals.push(reported("boot of a cell to its first answer, ms", median(boots)));

printTable(["", "CPU µs each", "least"], rows);
printGoals(goals);

interface Side {
  url: string;
  pids: () => number[];
}

/** Compares CPU time of a small response on both sides, in alternating rounds. */
async function compare(
  sides: Record<string, Side>,
  host: string,
  judge: (ratio: number) => Goal,
): Promise<(string | number)[][]> {
  const [connections, count] = [16, 3000];
  const cpu = new Map(Object.keys(sides).map((side) => [side, [] as number[]]));
  for (let round = -3; round < rounds; round++) {
    const order = Object.entries(sides);
    for (const [side, { url, pids }] of round % 2 === 0 ? order : order.toReversed()) {
      const used = (): number => pids().reduce((sum, pid) => sum + cpuMicroseconds(pid), 0);
      const before = used();
      await load(url, count, connections, () => ({ method: "GET", path: "/1024", headers: { host } }));
      if (round >= 0) cpu.get(side)!.push((used() - before) / count); // those before are warm-up
    }
  }
  const [first, second] = [...cpu.values()];
  goals.push(judge(pairedRatio(first!, second!)));
  return [...cpu].map(([side, each]) => [side, median(each), Math.min(...each)]);
}

/** The ids of a process and all its descendants. */
function family(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim();
  return [pid, ...(children === "" ? [] : children.split(" ").flatMap((child) => family(Number(child))))];
}

async function timeMs(work: () => Promise<void>): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

async function visit(): Promise<void> {
  const request = { method: "GET", path: "/1024", headers: { host: "www.bench.example" } } as const;
  await load(selvedge.ready.edge, 1, 1, () => request);
}

async function addSnippet(name: string, source: string): Promise<void> {
  const form = new FormData();
  form.append("metadata", JSON.stringify({ main_module: "snippet.js" }));
  form.append("files", new File([source], "snippet.js", { type: "application/javascript+module" }));
  const response = await fetch(`${selvedge.ready.api}/zones/${zoneId}/snippets/${name}`, {
    method: "PUT",
    headers: { authorization: `Bearer ${benchToken}` },
    body: form,
  });
  if (!response.ok) throw new Error(await response.text());
}

async function setRules(names: readonly string[]): Promise<void> {
  await api(selvedge.ready, "PUT", `/zones/${zoneId}/snippets/snippet_rules`, {
    rules: names.map((snippet_name) => ({ snippet_name, expression: "true", enabled: true })),
  });
}
