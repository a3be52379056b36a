import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { fourColors, pngOf } from "../images/fixtures.ts";
import { startPostgres, type TestPostgres } from "../helpers/postgres.ts";
import { type Answered, bindingsToWrites, callerOf, everyWrite, type Writes } from "../helpers/writes.ts";
import { startHosting, type Hosting } from "../runtime/platform.ts";

/** PostgreSQL crashes or freezes under a running platform. */
let postgres: TestPostgres;
let server: Hosting;
let account: string;
let call: ReturnType<typeof callerOf>;
let made: Writes;
let valuesOf: string;
let n = 0;
/** Ids of the created resources. */
const paths: string[] = [];

/** A script that uses its bindings. Its queue's consumer writes messages to the namespace. */
const script = `
export default {
  async fetch(request, env) {
    const asked = {
      get: () => env.KV.get("known"),
      put: () => env.KV.put("written", "value"),
      list: () => env.KV.list(),
      send: async () => void (await env.JOBS.send("sent by a script")),
      create: async () => (await env.FLOW.create()).id,
    };
    const answers = {};
    for (const [name, ask] of Object.entries(asked)) {
      try { answers[name] = { result: await ask() }; }
      catch ({ message }) { answers[name] = { message }; }
    }
    return Response.json(answers);
  },
  async queue(batch, env) {
    for (const { body } of batch.messages) await env.KV.put("taken " + body, "1");
  },
};`;

beforeAll(async () => {
  postgres = await startPostgres();
  server = await startHosting({
    databaseUrl: await postgres.createDatabase(),
    databaseTimeoutSeconds: 1,
    logLevel: "error",
  });
  call = callerOf(server.ready.api);
  account = `/accounts/${server.account}`;
  const png = await pngOf(fourColors(64, 48));
  made = await everyWrite(call, server.account, { png, largeBytes: 64 * 1024 });
  const namespace = await server.createKv("bound", { known: "value" });
  valuesOf = `${account}/storage/kv/namespaces/${namespace}/values`;
  const queue = await call("POST", `${account}/queues`, { queue_name: "jobs" });
  await server.deploy("asking", {
    code: script,
    bindings: [...bindingsToWrites(namespace)],
  });
  await call("POST", `${account}/queues/${queue.result.queue_id}/consumers`, {
    type: "worker",
    script_name: "asking",
    settings: { max_wait_time_ms: 0 },
  });
  for (const { kind, send, made: pathOf } of made.writes) {
    const answer = await send(++n);
    expect(show(kind, answer)).toMatch(/: 20[0-2] /);
    if (pathOf !== undefined) paths.push(pathOf(n, answer));
  }
  expect(await asking()).toEqual({
    get: "value",
    put: null,
    list: expect.anything(),
    send: null,
    create: expect.any(String),
  });
});
afterAll(() => postgres.stop());

/** The results or error messages of the script's calls. */
async function asking(): Promise<Record<string, unknown>> {
  const { status, body } = await server.ask("asking");
  expect([status, body]).toEqual([200, expect.stringMatching(/^\{/)]);
  const answers = JSON.parse(body) as Record<string, { result?: unknown; message?: string }>;
  return Object.fromEntries(
    Object.entries(answers).map(([name, { result, message }]) => [name, message ?? result ?? null]),
  );
}

/** Uploads an image that has not been requested yet. */
async function newImage(): Promise<string> {
  const write = made.writes.find(({ kind }) => kind === "image")!;
  return (await write.send(++n)).result.id as string;
}

async function readiness(): Promise<unknown> {
  const answer = await fetch(new URL("/readyz", server.ready.api));
  return [answer.status, await answer.json()];
}

const recovery = { timeout: 50_000 };
const show = (what: string, { status, text }: Pick<Answered, "status" | "text">): string =>
  `${what}: ${status} ${text.slice(0, 300)}`;

/** Every write, and a read of every resource: either 503 with Retry-After, or data from memory. */
async function expectUnavailable(): Promise<void> {
  const writes = await Promise.all(
    made.writes.map(async ({ kind, send }) => ({ kind, answer: await send(++n) })),
  );
  const refused = writes.filter(
    ({ answer: { status, headers } }) => status !== 503 || headers.get("retry-after") === null,
  );
  expect(refused.map(({ kind, answer }) => show(kind, answer))).toEqual([]);
  const reads = await Promise.all(paths.map(async (path) => ({ path, answer: await call("GET", path) })));
  const wrong = reads.filter(({ answer: { status } }) => status !== 200 && status !== 503);
  expect(wrong.map(({ path, answer }) => show(path, answer))).toEqual([]);
}

async function expectRecovered(): Promise<void> {
  await expect.poll(readiness, recovery).toEqual([200, { status: "ok" }]);
  for (const { kind, send } of made.writes) {
    // Workflow shards may have to be leased again first.
    await expect.poll(async () => show(kind, await send(++n)), recovery).toMatch(/: 20[0-2] /);
  }
}

it.each([
  ["crashed", () => postgres.crash(), () => postgres.start()],
  ["standing still", async () => postgres.pause(), async () => postgres.resume()],
])(
  "while the database is %s the API answers 503, and everything continues afterwards",
  async (_, stop, start) => {
    const id = `across-${++n}`;
    await call("POST", `${made.workflow}/instances`, { id, params: { sleep: "2 seconds" } });
    const picture = `${server.ready.delivery}/${server.ready.account_hash}/${await newImage()}/public`;
    await server.deploy(id, `export default { fetch: () => new Response("cold") };`);
    await stop();
    await expectUnavailable();
    expect(await readiness()).toEqual([
      503,
      { status: "unavailable", not_ready: expect.arrayContaining(["database"]) },
    ]);
    expect((await fetch(new URL("/healthz", server.ready.api))).status).toBe(200);
    expect(await asking()).toEqual({
      get: expect.stringMatching(/^KV GET failed: 503 The database of this installation does not answer/),
      put: expect.stringMatching(/^KV PUT failed: 503 /),
      list: expect.stringMatching(/^KV GET failed: 503 /),
      send: expect.stringMatching(/^Queue send failed: The database/),
      create: expect.stringMatching(/database/),
    });
    const { status, headers } = await fetch(picture);
    expect([status, headers.get("retry-after")]).toEqual([503, "5"]);
    const cold = await server.ask(id);
    expect([cold.status, cold.headers["retry-after"], cold.body]).toEqual([
      503,
      "5",
      expect.stringContaining("Temporarily unavailable"),
    ]);

    await start();
    await expectRecovered();
    const { workflow } = made;
    const { timeout } = recovery;
    await expect
      .poll(async () => (await call("GET", `${workflow}/instances/${id}`)).result?.status, { timeout })
      .toBe("complete");
    expect(await asking()).toMatchObject({ get: "value", put: null, send: null, create: expect.any(String) });
    const taken = `${valuesOf}/taken%20sent%20by%20a%20script`;
    await expect.poll(async () => (await call("GET", taken)).status, { timeout }).toBe(200);
    await call("DELETE", taken);
    expect((await fetch(picture)).status).toBe(200);
  },
);

it("a platform without its database can be stopped", async () => {
  await call("POST", `${made.workflow}/instances`, { id: `left-${++n}`, params: { sleep: "1 second" } });
  postgres.pause();
  onTestFinished(() => postgres.resume());
  await server.close(1000);
});
