import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { startPostgres, type TestPostgres } from "../helpers/postgres.ts";
import { ask, startCores, visitAllTheTime, type Cores } from "./cores.ts";

const wait = { interval: 50 };

let postgres: TestPostgres;
let url: string;
let cores: Cores;
beforeAll(async () => {
  postgres = await startPostgres();
  url = await postgres.createDatabase();
  cores = await start();
});
afterAll(async () => {
  await cores[Symbol.asyncDispose]();
  await postgres.stop();
});

const start = async (): Promise<Cores> => startCores(2, ["--blob-url", "postgres", "--database-url", url]);

/** The answers of as many requests, each on a connection of its own, so that every edge process takes some. */
const answersFor = async (node: Cores, name: string, requests = 50): Promise<Set<number | string>> =>
  new Set(
    await Promise.all(
      Array.from({ length: requests }, () => ask(node.server.ready.edge, `${name}.cores.example`)),
    ),
  );

it("every edge process serves a change when the API has answered", async () => {
  for (let change = 0; change < 10; change++) {
    await cores.addName(`n${change}`);
    expect(await answersFor(cores, `n${change}`)).toEqual(new Set([200]));
  }
});

it("edge processes serve without main and are replaced when they are killed", async () => {
  await cores.addName("www");
  const clients = 4;
  const stop = visitAllTheTime(cores.server.ready.edge, "www.cores.example", clients);
  const [main] = cores.pids("main");
  process.kill(main!, "SIGKILL");
  await cores.addName("after"); // waits in the queue of the socket
  expect(await answersFor(cores, "after")).toEqual(new Set([200]));
  expect([...(await stop()).keys()]).toEqual(["200"]);

  const again = visitAllTheTime(cores.server.ready.edge, "www.cores.example", clients);
  const [edge] = cores.pids("edge");
  process.kill(edge!, "SIGKILL");
  await vi.waitFor(() => {
    expect(cores.pids("edge").includes(edge!)).toBe(false);
    expect(cores.pids("edge").length).toBe(2);
  }, wait);
  await cores.addName("later");
  expect(await answersFor(cores, "later")).toEqual(new Set([200]));
  const { 200: whole = 0, ...failed } = Object.fromEntries(await again()) as Record<string, number>;
  expect(whole).toBeGreaterThan(clients);
  expect(Object.values(failed).reduce((sum, count) => sum + count, 0)).toBeLessThanOrEqual(clients);
});

it("nodes with edge processes serve each other's changes, also those that came while one had no main", async () => {
  const first = cores;
  await using second = await start();
  const served = async (node: Cores, name: string): Promise<void> =>
    vi.waitFor(async () => expect(await answersFor(node, name)).toEqual(new Set([200])), wait);
  await first.addName("one");
  expect(await answersFor(first, "one")).toEqual(new Set([200]));
  await served(second, "one");
  await second.addName("two");
  expect(await answersFor(second, "two")).toEqual(new Set([200]));
  await served(first, "two");
  const [main] = first.pids("main");
  process.kill(main!, "SIGKILL");
  await second.addName("three");
  await served(first, "three");
  await first.addName("four");
  expect(await answersFor(first, "four")).toEqual(new Set([200]));
  await served(second, "four");
});

const deaths = (): number => cores.server.stderr().split("has ended and is started again").length - 1;

it("edge processes outlast the database, also one that starts while it is away", async () => {
  const stop = visitAllTheTime(cores.server.ready.edge, "www.cores.example", 4);
  const ended = deaths();
  await postgres.crash();
  expect((await cores.call("GET", `/zones/${cores.zoneId}/dns_records`)).status).toBe(503);
  expect(await answersFor(cores, "www")).toEqual(new Set([200]));
  expect([...(await stop()).keys()]).toEqual(["200"]);

  const before = cores.pids("edge");
  process.kill(before[0]!, "SIGKILL");
  await vi.waitFor(() => {
    const now = cores.pids("edge");
    expect([now.length, now.includes(before[0]!)]).toEqual([2, false]);
  }, wait);
  await vi.waitFor(() => expect(cores.server.stderr()).toContain("waiting for the database"), wait);
  expect(await answersFor(cores, "www")).toEqual(new Set([200]));
  await postgres.start();
  await vi.waitFor(() => cores.addName("reborn"), wait);
  expect(await answersFor(cores, "reborn")).toEqual(new Set([200]));
  // No process gave up: the one that started meanwhile has waited.
  expect(deaths() - ended).toBe(1);
});
