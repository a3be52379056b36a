/** The figures of docs/sizing.md: memory of each process, and CPU time of each kind of request. */
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { encode } from "dns-packet";
import { photo } from "./images-lib.ts";
import { api, benchToken, startPeer, startSelvedge } from "./lib/child.ts";
import { load } from "./lib/load.ts";
import { median, printTable } from "./lib/measure.ts";
import { prepared } from "./lib/planes.ts";
import { processTree, treeCpuMicroseconds } from "./lib/tree.ts";

const rounds = 7;
/** V8 finishes compiling hot code after about 18,000 requests. */
const warmUpRounds = 8;
const quietMs = 8000;
const flags = ["--cells", "1", "--workflow-create-rate", "0", "--workflow-account-create-rate", "0"];
flags.push("--dns-response-rate-limit", "0");

const origin = await startPeer("origin.ts");
const selvedge = await startSelvedge(flags);
// The program collects its garbage when it is quiet.
await delay(quietMs);
const memory: [string, number, number][] = [["idle, no scripts and pictures", ...memoryOf(selvedge.pid)]];
const { kinds } = await prepared(selvedge, origin.port, await photo(1200, 900));
const { ready, pid } = selvedge;
const { id: zone } = await api<{ id: string }>(ready, "POST", "/zones", { name: "sizing.example" });
await api(ready, "POST", `/zones/${zone}/dns_records`, { type: "A", name: "www", content: "192.0.2.1" });

// Bubblewrap, which starts a cell, stays as its small parent.
const isCell = (each: number): boolean => readFileSync(`/proc/${each}/comm`, "utf8").trim() === "workerd";
for (const kind of ["a snippet's kilobyte", "a script", "a workflow of five steps"])
  await kinds[kind]!.run(50);
for (const [index, cell] of processTree(pid).filter(isCell).entries())
  memory.push([`cell ${index + 1}, after 50 requests`, ...memoryOf(cell)]);

const calls =
  (method: "GET" | "POST", make: (index: number) => { path: string; body?: string }) => (count: number) =>
    load(new URL(ready.api).origin, count, 16, (index) => {
      const { path, body } = make(index);
      const headers = { authorization: `Bearer ${benchToken}`, "content-type": "application/json" };
      return { method, path: `/client/v4${path}`, headers, ...(body === undefined ? {} : { body }) };
    });
let created = 0;
const all = {
  "a read of a DNS record through the API": {
    count: 2000,
    run: calls("GET", () => ({ path: `/zones/${zone}/dns_records?name=www.sizing.example` })),
  },
  "a new DNS record through the API": {
    count: 500,
    run: calls("POST", () => ({
      path: `/zones/${zone}/dns_records`,
      body: JSON.stringify({ type: "A", name: `host-${created++}`, content: "192.0.2.1" }),
    })),
  },
  ...kinds,
  "an answer of the name server": { count: 5000, run: ask },
};
const rows = [];
for (const [name, { count, run }] of Object.entries(all)) {
  const cpu: number[] = [];
  for (let round = -warmUpRounds; round < rounds; round++) {
    const start = treeCpuMicroseconds(pid);
    await run(count);
    const end = treeCpuMicroseconds(pid);
    if (round >= 0) cpu.push((end.own + end.below - start.own - start.below) / count);
  }
  rows.push([name, Math.round(median(cpu)), Math.round(1e6 / median(cpu))]);
}
for (const each of processTree(pid).filter((one) => commandOf(one).includes("engine/process.ts")))
  memory.push(["process for pictures", ...memoryOf(each)]);
memory.push(["the server process after this load", ...memoryOf(pid)]);
await delay(quietMs);
memory.push(["the same, a few seconds later", ...memoryOf(pid)]);
printTable(["memory, MB", "resident", "its share (PSS)"], memory);
printTable(["CPU time of one", "µs", "each second on one core"], rows);
await selvedge.stop();
await origin.stop();

/** Resident and proportional megabytes of a process. */
function memoryOf(of: number): [resident: number, share: number] {
  const text = readFileSync(`/proc/${of}/smaps_rollup`, "utf8");
  const kilobytes = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(text)?.[1]);
  return [Math.round(kilobytes("Rss") / 1024), Math.round(kilobytes("Pss") / 1024)];
}

function commandOf(of: number): string {
  return readFileSync(`/proc/${of}/cmdline`, "latin1").replaceAll("\0", " ").trim();
}

/** Queries the name server over UDP, with 32 queries in flight. */
async function ask(count: number): Promise<void> {
  const socket = createSocket("udp4");
  const [host, port] = ready.dns.split(":");
  socket.connect(Number(port), host);
  await once(socket, "connect");
  const question = encode({
    type: "query",
    id: 1,
    questions: [{ type: "A", name: "www.sizing.example" }],
  });
  let [sent, received] = [0, 0];
  await new Promise<void>((resolve) => {
    const send = (): void => {
      if (sent++ < count) socket.send(question);
    };
    socket.on("message", () => {
      if (++received === count) resolve();
      send();
    });
    for (let first = 0; first < 32; first++) send();
  });
  socket.close();
}
