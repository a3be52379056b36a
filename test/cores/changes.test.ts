import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { connect, type TLSSocket } from "node:tls";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { startLink } from "../helpers/links.ts";
import { ask, startCores, type Cores } from "./cores.ts";

/** The status of a name without a record. */
const unknownName = 404;
const edges = 4;
const wait = { timeout: 30_000 };
/** So long that changes come meanwhile, and so short that no process is replaced. */
const stopMs = 300;

let cores: Cores;
beforeAll(async () => {
  cores = await startCores(edges, ["--edge-tls-listen", "127.0.0.1:0"]);
});
afterAll(() => cores[Symbol.asyncDispose]());

/** The answers of requests on connections of their own, so that every edge process takes some. */
const answersFor = async (name: string, requests = 50): Promise<Set<number | string>> =>
  new Set(
    await Promise.all(
      Array.from({ length: requests }, () => ask(cores.server.ready.edge, `${name}.cores.example`)),
    ),
  );

it("every edge process serves a change when the API has answered", async () => {
  // On a busy machine, one may have stalled at its start and be replaced.
  await vi.waitFor(() => expect(cores.pids("edge").length).toBe(edges), wait);
  for (let change = 0; change < 10; change++) {
    await cores.addName(`n${change}`);
    expect(await answersFor(`n${change}`)).toEqual(new Set([200]));
    await cores.removeName(`n${change}`);
    expect(await answersFor(`n${change}`)).toEqual(new Set([unknownName]));
  }
});

it("nothing is stale while edge processes are stopped in turn, and go on", async () => {
  const state = { isEnding: false };
  const stopping = (async () => {
    for (let turn = 0; !state.isEnding; turn++) {
      const pid = cores.pids("edge")[turn % edges];
      if (pid === undefined) continue;
      process.kill(pid, "SIGSTOP");
      await delay(stopMs);
      process.kill(pid, "SIGCONT");
    }
  })();
  try {
    for (let change = 0; change < 10; change++) {
      await cores.addName(`s${change}`);
      expect(await answersFor(`s${change}`)).toEqual(new Set([200]));
      await cores.removeName(`s${change}`);
      expect(await answersFor(`s${change}`)).toEqual(new Set([unknownName]));
    }
  } finally {
    state.isEnding = true;
    await stopping;
  }
});

/** A visit over TLS. Resolves when the connection has closed. */
const visitOver = (
  port: number,
  ca: string,
  session?: Buffer,
): Promise<{ isResumed: boolean; session: Buffer | undefined }> =>
  new Promise((resolve, reject) => {
    const servername = "www.cores.example";
    const options = { host: "127.0.0.1", port, ca, servername };
    const socket: TLSSocket = connect(session === undefined ? options : { ...options, session });
    let isResumed = false;
    let next: Buffer | undefined;
    socket.on("error", reject);
    socket.on("session", (given) => (next = given));
    socket.on("secureConnect", () => (isResumed = socket.isSessionReused()));
    socket.on("close", () => resolve({ isResumed, session: next }));
    socket.resume();
    socket.write(`GET / HTTP/1.1\r\nhost: ${servername}\r\nconnection: close\r\n\r\n`);
  });

it("a TLS session that one process began is resumed by every other", async () => {
  await cores.addName("www");
  const { ready } = cores.server;
  const port = Number(new URL(ready.edge_tls!).port);
  const ca = readFileSync(ready.tls_authority!, "utf8");
  const first = await visitOver(port, ca);
  expect(first.isResumed).toBe(false);
  const visits = await Promise.all(Array.from({ length: 30 }, () => visitOver(port, ca, first.session)));
  expect(visits.filter(({ isResumed }) => !isResumed)).toEqual([]);
});

it("smart routing learns from the requests of every process, and its results are those of all", async () => {
  const [near, far] = ["127.0.0.1", "127.0.0.61"];
  const link = await startLink(
    { host: far, port: cores.originPort },
    { host: near, port: cores.originPort },
    () => ({ ms: 250 }),
  );
  const zone = `/zones/${cores.zoneId}`;
  for (const content of [far, near]) {
    const record = { type: "A", name: "smart", content, proxied: true };
    expect((await cores.call("POST", `${zone}/dns_records`, record)).status).toBe(200);
  }
  expect((await cores.call("PATCH", `${zone}/edge/smart_routing`, { value: "on" })).status).toBe(200);
  const requests = 5;
  const batches = 20;
  for (let batch = 0; batch < batches; batch++)
    expect(await answersFor("smart", requests)).toEqual(new Set([200]));
  await vi.waitFor(async () => {
    const { result } = await cores.call("GET", `${zone}/edge/smart_routing/analytics`);
    const { smart, direct, paths } = result as {
      smart: { requests: number };
      direct: { requests: number };
      paths: { path: string; current: boolean; requests: number }[];
    };
    expect(smart.requests + direct.requests).toBe(requests * batches);
    const isNear = paths
      .toSorted((a, b) => b.requests - a.requests)
      .map(({ path, current }) => [path, current]);
    expect(isNear).toEqual([
      [near, true],
      [far, false],
    ]);
  }, wait);
  await link.close();
});

it("an edge process that is stopped delays no change for long, and serves nothing stale when it goes on", async () => {
  const [stopped] = cores.pids("edge");
  const id = /"id":(\d+)/.exec(readFileSync(`/proc/${stopped!}/environ`, "utf8"))![1];
  process.kill(stopped!, "SIGSTOP");
  await cores.addName("new");
  const noted = `"edge":${id},"msg":"an edge process does not answer`;
  await vi.waitFor(() => expect(cores.server.stderr()).toContain(noted), wait);
  // Connections that wait in the queue are accepted by those that run.
  expect(await ask(cores.server.ready.edge, "new.cores.example")).toBe(200);
  process.kill(stopped!, "SIGCONT");
  expect(await answersFor("new", 200)).toEqual(new Set([200]));
  await vi.waitFor(() => {
    const now = cores.pids("edge");
    expect([now.length, now.includes(stopped!)]).toEqual([edges, false]);
  }, wait);
});
