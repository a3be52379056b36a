import { Client } from "pg";
import { afterAll, beforeAll, expect, it, onTestFinished, vi } from "vitest";
import { startPostgres, type TestPostgres } from "../helpers/postgres.ts";
import { serve, type ServerProcess } from "../helpers/process.ts";
import { ownerToken, startTestServer, type TestServer } from "../helpers/server.ts";
import { requestEdge } from "../helpers/edge-request.ts";

/** Nodes that cannot follow, were suspended or killed, or lost their database for a while. */
let postgres: TestPostgres;
beforeAll(async () => {
  postgres = await startPostgres();
});
afterAll(() => postgres.stop());
const wait = { interval: 20 };

async function clientOf(url: string): Promise<Client> {
  const client = new Client(url);
  client.on("error", () => {});
  await client.connect();
  onTestFinished(() => client.end());
  return client;
}

const readiness = async (api: string): Promise<unknown> => {
  const answer = await fetch(new URL("/readyz", api));
  return [answer.status, await answer.json()];
};
const ready = [200, { status: "ok" }];

async function start(settings: Parameters<typeof startTestServer>[0]): Promise<TestServer> {
  const server = await startTestServer({ logLevel: "fatal", ...settings });
  onTestFinished(() => server.close(1000));
  return server;
}

it("a client reads its writes on every node, if it asks for that", async () => {
  const databaseUrl = await postgres.createDatabase();
  const [first, second] = [await start({ databaseUrl }), await start({ databaseUrl })];
  for (let n = 0; n < 5; n++) {
    const made = await first.call("POST", "/zones", { name: `written-${n}.example` });
    const seq = made.headers.get("selvedge-seq")!;
    expect(Number(seq)).toBeGreaterThan(0);
    const read = await second.call("GET", `/zones/${made.body.result.id}`, undefined, {
      "selvedge-min-seq": seq,
    });
    expect([read.status, read.body.result.name]).toEqual([200, `written-${n}.example`]);
    expect(Number(read.headers.get("selvedge-seq"))).toBeGreaterThanOrEqual(Number(seq));
  }
  const askFor = (seq: string) => second.call("GET", "/zones", undefined, { "selvedge-min-seq": seq });
  const late = await askFor("999999");
  expect([late.status, late.headers.get("retry-after")]).toEqual([503, "1"]);
  expect(late.body.errors[0]).toMatchObject({ code: 10511, message: expect.stringContaining("999999") });
  for (const wrong of ["-1", "1.5", "x", "1".repeat(16)]) expect((await askFor(wrong)).status).toBe(400);
});

it("on SQLite, answers name no change, and requests do not wait for one", async () => {
  const server = await start({});
  const { status, headers } = await server.call("GET", "/zones", undefined, { "selvedge-min-seq": "999999" });
  expect([status, headers.get("selvedge-seq")]).toEqual([200, null]);
});

it("a node that cannot follow says so, and serves or refuses visitors as configured", async () => {
  const databaseUrl = await postgres.createDatabase();
  const settings = { databaseUrl, staleAfterSeconds: 2 };
  const [serving, refusing] = [await start(settings), await start({ ...settings, staleEdge: "refuse" })];
  const ask = async ({ ready: { edge } }: TestServer) => requestEdge(edge, "unknown.example");
  const known = (await ask(serving)).status;
  await vi.waitFor(async () => expect((await ask(refusing)).status).toBe(known), wait);
  const operator = await clientOf(databaseUrl);
  await operator.query("alter table change_head rename to hidden");
  const behind = [503, { status: "unavailable", not_ready: ["changes_stale"] }];
  for (const { ready: at } of [serving, refusing])
    await vi.waitFor(async () => expect(await readiness(at.api)).toEqual(behind), wait);
  expect((await ask(serving)).status).toBe(known);
  const refused = await ask(refusing);
  expect([refused.status, refused.headers["retry-after"]]).toEqual([503, "5"]);
  // A change that other nodes could not see is not made.
  const unseen = await serving.call("POST", "/zones", { name: "unseen.example" });
  expect(unseen.status).toBe(500);
  await operator.query("alter table hidden rename to change_head");
  for (const { ready: at } of [serving, refusing])
    await vi.waitFor(async () => expect(await readiness(at.api)).toEqual(ready), wait);
  expect((await ask(refusing)).status).toBe(known);
  const zones = await refusing.call("GET", "/zones");
  expect(zones.body.result).toEqual([]);
});

it("nodes follow each other again after PostgreSQL was away, and nothing acknowledged is lost", async () => {
  const databaseUrl = await postgres.createDatabase();
  const settings = { databaseUrl, databaseTimeoutSeconds: 2 };
  const [first, second] = [await start(settings), await start(settings)];
  const acknowledged: string[] = [];
  const end = new AbortController();
  const writing = (async () => {
    for (let n = 0; !end.signal.aborted; n++) {
      const { status, headers } = await first.call("POST", "/zones", { name: `away-${n}.example` });
      if (status === 200) acknowledged.push(`away-${n}.example`);
      else expect([status, headers.get("retry-after")]).toEqual([503, "5"]);
    }
  })();
  await vi.waitFor(() => expect(acknowledged.length).toBeGreaterThan(3), wait);
  await postgres.crash();
  for (const { ready: at } of [first, second])
    await vi.waitFor(async () => expect(await readiness(at.api)).toMatchObject([503, {}]), wait);
  await postgres.start();
  for (const { ready: at } of [first, second])
    await vi.waitFor(async () => expect(await readiness(at.api)).toEqual(ready), wait);
  const before = acknowledged.length;
  await vi.waitFor(() => expect(acknowledged.length).toBeGreaterThan(before + 3), wait);
  end.abort();
  await writing;
  await vi.waitFor(() => {
    const known = new Set(second.services.zones.list().map(({ name }) => name));
    expect(acknowledged.filter((name) => !known.has(name))).toEqual([]);
  }, wait);
});

it("a suspended node reads everything again when the log has gone on without it, and a killed one leaves no hole", async () => {
  const databaseUrl = await postgres.createDatabase();
  const operator = await clientOf(databaseUrl);
  const node = async (): Promise<ServerProcess> => {
    const options = ["--ephemeral", "--database-url", databaseUrl, "--metrics-listen", "127.0.0.1:0"];
    const started = await serve(options, { SELVEDGE_API_TOKEN: ownerToken, SELVEDGE_API_RATE_LIMIT: "0" });
    onTestFinished(() => void started.process.kill("SIGKILL"));
    return started;
  };
  const [first, second] = await Promise.all([node(), node()]);
  const call = async ({ ready: { api } }: ServerProcess, method: string, path: string, body?: unknown) => {
    const answer = await fetch(`${api}${path}`, {
      method,
      headers: { authorization: `Bearer ${ownerToken}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: answer.status, ...((await answer.json()) as { result: { id: string; name: string } }) };
  };
  const old = (await call(first, "POST", "/zones", { name: "old.example" })).result.id;
  await vi.waitFor(async () => expect((await call(second, "GET", `/zones/${old}`)).status).toBe(200), wait);

  process.kill(second.ready.pid, "SIGSTOP");
  await call(first, "DELETE", `/zones/${old}`);
  const made = (await call(first, "POST", "/zones", { name: "new.example" })).result.id;
  await operator.query("delete from changes where seq < (select seq from change_head)");
  process.kill(second.ready.pid, "SIGCONT");
  await vi.waitFor(async () => expect((await call(second, "GET", `/zones/${made}`)).status).toBe(200), wait);
  expect((await call(second, "GET", `/zones/${old}`)).status).toBe(404);
  await vi.waitFor(async () => {
    const metrics = await (await fetch(second.ready.metrics!)).text();
    expect(metrics).toMatch(/^selvedge_change_reloads_total\{reason="missing"\} 1$/m);
  }, wait);

  // The first node is killed while it writes.
  const acknowledged: string[] = [];
  const writers = Array.from({ length: 4 }, async (_, writer) => {
    for (let n = 0; ; n++) {
      const name = `${writer}-${n}.example`;
      const answer = await call(first, "POST", "/zones", { name }).catch(() => {});
      if (answer === undefined) return;
      if (answer.status === 200) acknowledged.push(name);
    }
  });
  await vi.waitFor(() => expect(acknowledged.length).toBeGreaterThan(8), wait);
  process.kill(first.ready.pid, "SIGKILL");
  await Promise.all(writers);
  await call(second, "POST", "/zones", { name: "after.example" });
  const { rows: log } = await operator.query(
    "select count(distinct seq)::int as held, (max(seq) - min(seq) + 1)::int as numbers from changes",
  );
  expect(log[0].held).toBe(log[0].numbers);
  const { rows: zones } = await operator.query<{ name: string }>("select name from zones");
  const stored = new Set(zones.map(({ name }) => name));
  expect(acknowledged.filter((name) => !stored.has(name))).toEqual([]);
  await vi.waitFor(async () => {
    const { result } = await call(second, "GET", "/zones?per_page=50");
    expect(result).toHaveLength(Math.min(50, zones.length));
  }, wait);
});
