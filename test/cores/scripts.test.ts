import { once } from "node:events";
import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { WebSocket } from "ws";
import { cellPids } from "../runtime/cell-processes.ts";
import { startCores, visitAllTheTime, type Cores } from "./cores.ts";
import { changeVersions } from "./versions.ts";

const wait = { interval: 50 };
const answering = (text: string): string => `export default { fetch: () => new Response("${text}") }`;
const looping = "export default { fetch() { for (;;) {} } }";

let cores: Cores;
beforeAll(async () => {
  cores = await startCores(2, ["--script-cpu-ms", "200"]);
});
afterAll(() => cores[Symbol.asyncDispose]());

/** The processes of cells below edge processes, by the edge process. */
const cellsOfEdges = (): Map<number, number[]> =>
  new Map(cores.pids("edge").map((pid) => [pid, cellPids(pid)]));

/** Visits until each edge process has cells: which one accepts a connection is the system's choice. */
async function wakeCells(script: string): Promise<void> {
  await vi.waitFor(async () => {
    await Promise.all(Array.from({ length: 20 }, () => cores.calls.ask(script)));
    for (const cells of cellsOfEdges().values()) expect(cells).not.toEqual([]);
  }, wait);
}

it("a version is seen in every process when the API has answered", async () => {
  expect(await changeVersions(cores, 30)).toEqual([]);
});

it("a script that loops is stopped and quarantined for all processes, and its neighbours do not notice", async () => {
  const { calls, server } = cores;
  await calls.deploy("neighbour", answering("well"));
  await calls.deploy("looping", looping);
  await wakeCells("neighbour");
  const stop = visitAllTheTime(server.ready.edge, calls.hostOf("neighbour"), 4);
  expect((await calls.ask("looping")).status).toBe(503);
  const stalls = (): number => server.stderr().split("ended a shared cell after a fault").length - 1;
  const stalledAtFirst = stalls();
  expect(stalledAtFirst).toBe(1);
  for (let visit = 0; visit < 6; visit++) expect((await calls.ask("looping")).status).toBe(503);
  expect(stalls()).toBe(stalledAtFirst); // the other process knew
  expect([...(await stop()).keys()]).toEqual(["200"]);
});

it("a cell that is killed, and an edge process with its cells, take only their own requests with them", async () => {
  const { calls, server } = cores;
  await calls.deploy("steady", answering("well"));
  await calls.deploy("waiting", "export default { fetch: () => new Promise(() => {}) }");
  await wakeCells("steady");
  const clients = 4;
  const stop = visitAllTheTime(server.ready.edge, calls.hostOf("steady"), clients);
  const [[, cells]] = [...cellsOfEdges()] as [[number, number[]]];
  for (const cell of cells) process.kill(cell, "SIGKILL");
  await wakeCells("steady");
  const [[edge, itsCells]] = [...cellsOfEdges()] as [[number, number[]]];
  process.kill(edge, "SIGKILL");
  await vi.waitFor(() => expect(server.stderr()).toContain("is started again"), wait);
  await vi.waitFor(() => expect(itsCells.filter(isAlive)).toEqual([]), wait);
  await vi.waitFor(() => expect(cores.pids("edge").length).toBe(2), wait);
  await wakeCells("steady");
  const { 200: whole = 0, ...failed } = Object.fromEntries(await stop()) as Record<string, number>;
  expect(whole).toBeGreaterThan(clients);
  const failures = Object.values(failed).reduce((sum, count) => sum + count, 0);
  expect(failures, JSON.stringify(failed)).toBeLessThanOrEqual(clients); // those of the edge process
});

it("a live log shows the runs of every process, from the moment at which it opens", async () => {
  const { calls } = cores;
  await calls.deploy(
    "logging",
    `export default { fetch(request) { console.log(request.url); return new Response("logged"); } }`,
  );
  await wakeCells("logging");
  const tails = `/accounts/${calls.account}/workers/scripts/logging/tails`;
  const { url, id } = (await cores.call("POST", tails, {})).result as { url: string; id: string };
  const socket = new WebSocket(url, "trace-v1");
  const seen: string[] = [];
  socket.on("message", (data: Buffer) => {
    const { logs, outcome } = JSON.parse(data.toString()) as {
      logs: { message: string[] }[];
      outcome: string;
    };
    seen.push(`${outcome} ${new URL(logs[0]!.message[0]!).pathname}`);
  });
  await once(socket, "open");
  const paths = Array.from({ length: 40 }, (_, n) => `/visit-${n}`);
  await Promise.all(paths.map((path) => calls.ask("logging", path)));
  await vi.waitFor(() => expect(seen.toSorted()).toEqual(paths.map((path) => `ok ${path}`).toSorted()), wait);
  await cores.call("DELETE", `${tails}/${id}`);
  seen.length = 0;
  await Promise.all(paths.map((path) => calls.ask("logging", path)));
  await delay(200);
  expect(seen).toEqual([]);
});

it("edge processes run scripts in cells of their own, also while there is no main", async () => {
  const { calls } = cores;
  await calls.deploy("hello", answering("hello"));
  await wakeCells("hello");
  const [main] = cores.pids("main");
  process.kill(main!, "SIGKILL");
  const asked = await Promise.all(Array.from({ length: 20 }, () => calls.ask("hello")));
  expect(new Set(asked.map(({ body }) => body))).toEqual(new Set(["hello"]));
});

it("no cell outlives the node", async () => {
  await cores.addName("main-is-back");
  await wakeCells("hello");
  const left = [...cellsOfEdges().values()].flat();
  await cores[Symbol.asyncDispose]();
  expect(left.filter(isAlive)).toEqual([]);
});

/** A process that has ended stays in the list of the system until its new parent has looked at it. */
function isAlive(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) Z/s.test(readFileSync(`/proc/${pid}/stat`, "latin1"));
  } catch {
    return false;
  }
}
