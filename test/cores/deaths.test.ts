import { Agent, request } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { jpegOf, scenery } from "../images/fixtures.ts";
import { startOutside } from "../runtime/platform.ts";
import { ask, startCores, uploadImage, visitAllTheTime, type Cores } from "./cores.ts";
import { portsHeld } from "./held.ts";
import { addPlainRecord, connectAllTheTime, plainAddress, queryAllTheTime, queryOverTcp } from "./queries.ts";
import { replaceUnderLoad } from "./replacements.ts";

const wait = { timeout: 60_000, interval: 50 };
const host = "www.cores.example";

let cores: Cores;
beforeAll(async () => {
  cores = await startCores(2);
  await cores.addName("www");
  await addPlainRecord(cores);
});
afterAll(() => cores[Symbol.asyncDispose]());

it("an edge process that is killed takes only its requests in flight with it", async () => {
  const clients = 6;
  const kills = 3;
  const stop = visitAllTheTime(cores.server.ready.edge, host, clients);
  for (let kill = 0; kill < kills; kill++) {
    await vi.waitFor(() => expect(cores.pids("edge").length).toBe(2), wait);
    process.kill(cores.pids("edge")[0]!, "SIGKILL");
    await vi.waitFor(
      () => expect(cores.server.stderr().split("is started again").length - 1).toBe(kill + 1),
      wait,
    );
  }
  const counts = await stop();
  const { 200: whole = 0, ...failed } = Object.fromEntries(counts) as Record<string, number>;
  expect(whole).toBeGreaterThan(clients);
  const failures = Object.values(failed).reduce((sum, count) => sum + count, 0);
  expect(failures).toBeLessThanOrEqual(clients * kills);
  expect(Object.keys(failed).filter((answer) => !["ECONNRESET", "cut", "EPIPE"].includes(answer))).toEqual(
    [],
  );
});

it("SIGUSR2 replaces every process and loses no connection and no DNS query", async () => {
  await vi.waitFor(() => expect(cores.pids("edge").length).toBe(2), wait);
  const port = Number(cores.server.ready.dns.split(":")[1]);
  const [stopUdp, stopTcp] = [queryAllTheTime(port), connectAllTheTime(port)];
  const { answers, ...ends } = await replaceUnderLoad(cores, { rounds: 2, clients: 4, webSockets: 20 });
  expect([...answers.keys()]).toEqual(["200"]);
  expect(ends).toEqual({ closed: new Map([[1001, 40]]), unreplaced: 0 });
  expect([...(await stopTcp()).keys()]).toEqual([plainAddress]);
  const { sent, lost } = await stopUdp();
  expect(sent).toBeGreaterThan(10);
  expect(lost).toEqual([]);
});

it("edge processes serve while there is no main, and calls of the API and DNS queries wait for the next one", async () => {
  const { edge, dns } = cores.server.ready;
  const port = Number(dns.split(":")[1]);
  await cores.calls.deploy("hello", `export default { fetch: () => new Response("hello") }`);
  const stop = visitAllTheTime(edge, host, 4);
  const stopUdp = queryAllTheTime(port);
  const [main] = cores.pids("main");
  process.kill(main!, "SIGKILL");
  await vi.waitFor(() => expect(cores.pids("main").includes(main!)).toBe(false), wait);
  expect(await ask(edge, host)).toBe(200);
  await cores.addName("after"); // waits in the queue of the socket
  const answers = await Promise.all(Array.from({ length: 50 }, () => ask(edge, "after.cores.example")));
  expect(new Set(answers)).toEqual(new Set([200]));
  expect((await cores.calls.ask("hello")).body).toBe("hello");
  expect(await queryOverTcp(port)).toBe(plainAddress);
  expect([...(await stop()).keys()]).toEqual(["200"]);
  // A datagram that the killed process had read is lost with it.
  expect((await stopUdp()).lost.length).toBeLessThanOrEqual(1);
});

/** A connection to each edge process, for requests one after another. */
async function connectToEach(): Promise<Agent[]> {
  const { edge } = cores.server.ready;
  const port = Number(new URL(edge).port);
  const found = new Map<number, Agent>();
  await vi.waitFor(async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const socket = await visit(agent, "/", host);
    const pid = cores.pids("edge").find((each) => portsHeld(each, port).has(socket.localPort));
    if (pid === undefined || found.has(pid)) agent.destroy();
    else found.set(pid, agent);
    expect(found.size).toBe(2);
  }, wait);
  return [...found.values()];
}

interface Visited {
  status: number;
  localPort: number;
}

const visit = (agent: Agent, path: string, name = "any.example"): Promise<Visited> =>
  new Promise((resolve, reject) => {
    const asked = request(cores.server.ready.edge + path, { agent, headers: { host: name } }, (response) => {
      const { localPort = 0 } = response.socket;
      response.on("end", () => resolve({ status: response.statusCode!, localPort })).resume();
    });
    asked.on("error", reject).end();
  });

/** A zone that transforms pictures of its origin, which may be kept. */
async function newTransformedPicture(
  picture: Buffer,
): Promise<{ host: string; path: string } & AsyncDisposable> {
  const outside = await startOutside((_request, response) =>
    response
      .writeHead(200, { "content-type": "image/jpeg", "cache-control": "public, max-age=600" })
      .end(picture),
  );
  const shop = "pictures.example";
  const zone = await cores.calls.createZone(shop, outside.port);
  await cores.call("PATCH", `/zones/${zone}/settings/transformations`, { value: "on" });
  return { host: shop, path: "/cdn-cgi/image/w=20/photo", [Symbol.asyncDispose]: () => outside.close() };
}

it("edge processes deliver the images that they have delivered before, also without main, until one is deleted", async () => {
  const picture = await jpegOf(scenery(60, 40));
  const path = `${await uploadImage(cores, "photo", picture)}/public`;
  await using transformed = await newTransformedPicture(picture);
  const agents = await connectToEach();
  const statuses = async (): Promise<number[]> =>
    Promise.all(agents.map(async (agent) => (await visit(agent, path)).status));
  const all = async (): Promise<number[]> =>
    (
      await Promise.all([
        statuses(),
        ...agents.map(async (agent) => (await visit(agent, transformed.path, transformed.host)).status),
      ])
    ).flat();
  // Main makes it, an edge process reads it, and then has it.
  for (let time = 0; time < 3; time++) expect(await all()).toEqual([200, 200, 200, 200]);
  // No main starts while the supervisor stands.
  process.kill(cores.server.ready.pid, "SIGSTOP");
  process.kill(cores.pids("main")[0]!, "SIGKILL");
  expect(await all()).toEqual([200, 200, 200, 200]);
  process.kill(cores.server.ready.pid, "SIGCONT");
  await cores.addName("main-is-back");
  const images = `/accounts/${cores.calls.account}/images/v1`;
  expect((await cores.call("DELETE", `${images}/photo`)).status).toBe(200);
  expect(await statuses()).toEqual([404, 404]);
  for (const agent of agents) agent.destroy();
});

it("a pause of the whole node ends none of its processes", async () => {
  const supervisor = cores.server.ready.pid;
  const children = [...cores.pids("main"), ...cores.pids("edge")];
  expect(children.length).toBe(3);
  for (const pid of [...children, supervisor]) process.kill(pid, "SIGSTOP");
  await delay(6000); // longer than main may be silent
  process.kill(supervisor, "SIGCONT");
  await delay(700); // it looks at main, which has said nothing yet
  for (const pid of children) process.kill(pid, "SIGCONT");
  await cores.addName("paused");
  expect(await ask(cores.server.ready.edge, "paused.cores.example")).toBe(200);
  expect([...cores.pids("main"), ...cores.pids("edge")]).toEqual(children);
});
