import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { ownerToken, startTestServer, type TestServer } from "../helpers/server.ts";
import { ask } from "../scripts/harness.ts";
import { Project } from "../wrangler/harness.ts";
import { startHosting, startOutside, type Hosting, type Outside } from "./platform.ts";

/** Scripts that register listeners instead of exporting handlers. */
let hosting: Hosting;
let outside: Outside;
beforeAll(async () => {
  hosting = await startHosting({ privateNetworks: "all" });
  outside = await startOutside((request, response) => response.end(`origin ${request.url}`));
});
afterAll(async () => {
  await outside.close();
  await hosting.close(0);
});

const deploy = async (
  name: string,
  source: string,
  bindings: Record<string, unknown>[] = [],
): Promise<void> =>
  hosting.deploy(name, {
    code: { "worker.cjs": source },
    bindings,
    metadata: { main_module: undefined, body_part: "worker.cjs" },
  });

test("answers, with its bindings as globals, and in sloppy mode", async () => {
  const id = await hosting.createKv("kept", { key: "value" });
  await deploy(
    "old",
    `undeclared = "made";
    async function handle(request) {
      const outsideAnswer = await (await fetch("${outside.url}/fetched")).text();
      return new Response(JSON.stringify([TEXT, await KV.get("key"), undeclared, request.method, outsideAnswer, typeof event]));
    }
    addEventListener("fetch", function (event) {
      event.waitUntil(fetch("${outside.url}/waited"));
      event.respondWith(handle(event.request));
    });
    addEventListener("fetch", () => { throw new Error("never asked"); });`,
    [
      { type: "plain_text", name: "TEXT", text: "plain" },
      { type: "kv_namespace", name: "KV", namespace_id: id },
    ],
  );
  const { status, body } = await hosting.ask("old");
  expect([status, JSON.parse(body)]).toEqual([
    200,
    ["plain", "value", "made", "GET", "origin /fetched", "undefined"],
  ]);
  await vi.waitFor(() => expect(outside.seen).toContain("GET /waited"));
});

/** A visitor from elsewhere; visitors of this machine see exceptions. */
const elsewhere = { "x-forwarded-for": "192.0.2.1" };

test.each([
  ["throws", `throw new Error("secret of the script");`, 500, "1101"],
  ["rejects", `event.respondWith(Promise.reject(new Error("secret of the script")));`, 500, "1101"],
  ["spins", `for (;;) {}`, 503, "1102"],
])("one that %s gets the same errors and limits as any", async (_what, body, status, code) => {
  await deploy("failing", `addEventListener("fetch", (event) => { ${body} });`);
  const answer = await hosting.ask("failing", "/", { headers: elsewhere });
  expect([answer.status, answer.body]).toEqual([status, expect.stringContaining(`error ${code}`)]);
  expect(answer.body).not.toContain("secret");
});

test("passes requests that it does not answer to the origin, also after an error with passThroughOnException", async () => {
  const zone = await hosting.createZone("older.example", outside.port);
  await deploy(
    "passing",
    `self.addEventListener("fetch", (event) => {
      const { pathname } = new URL(event.request.url);
      if (pathname === "/mine") return event.respondWith(new Response("mine"));
      if (pathname === "/broken") { event.passThroughOnException(); throw new Error("broken"); }
    });`,
  );
  await hosting.call("POST", `/zones/${zone}/workers/routes`, {
    pattern: "older.example/*",
    script: "passing",
  });
  const bodies = await Promise.all(
    ["/mine", "/other", "/broken"].map(async (path) => (await hosting.askHost("older.example", path)).body),
  );
  expect(bodies).toEqual(["mine", "origin /other", "origin /broken"]);
});

const run = async (name: string, kind: "scheduled" | "tail", event: unknown): Promise<unknown> => {
  const { scripts, runtime } = hosting.services;
  const owner = { accountId: hosting.account };
  return runtime.invoke(owner, scripts.live(owner, name)!, kind, JSON.stringify(event));
};
const timed = { cron: "*/5 * * * *", scheduledTime: 60_000 };

test("cron triggers arrive as events, and everything passed to waitUntil is awaited", async () => {
  const id = await hosting.createKv("timed");
  await deploy(
    "timed",
    `const later = () => new Promise((resolve) => setTimeout(resolve, 20));
    addEventListener("scheduled", (event) => {
      const { type, cron, scheduledTime } = event;
      event.waitUntil((async () => {
        await later();
        await KV.put("first", JSON.stringify([type, cron, scheduledTime]));
        event.waitUntil(later().then(() => KV.put("second", "done")));
      })());
    });
    addEventListener("scheduled", { handleEvent: (event) => { event.noRetry(); event.waitUntil("no promise"); } });
    addEventListener("fetch", (event) => event.respondWith(
      Promise.all([KV.get("first"), KV.get("second")]).then((all) => new Response(JSON.stringify(all)))));`,
    [{ type: "kv_namespace", name: "KV", namespace_id: id }],
  );
  expect(await run("timed", "scheduled", timed)).toMatchObject({ noRetry: true });
  expect(JSON.parse((await hosting.ask("timed")).body)).toEqual([
    JSON.stringify(["scheduled", timed.cron, timed.scheduledTime]),
    "done",
  ]);
});

test.each([
  ["throws", `throw new Error("thrown")`, "thrown"],
  ["waits for what fails", `event.waitUntil(Promise.reject(new Error("late")))`, "late"],
  [
    "waits for two that fail",
    `event.waitUntil(new Promise((_, reject) => setTimeout(reject, 20, new Error("first")))); event.waitUntil(Promise.reject(new Error("second")))`,
    "first",
  ],
  ["is asynchronous, and fails", `return Promise.reject(new Error("returned"))`, "returned"],
])("a trigger whose listener %s has failed", async (_what, body, message) => {
  await deploy("failing", `addEventListener("scheduled", (event) => { ${body} });`);
  await expect(run("failing", "scheduled", timed)).rejects.toThrow(message);
});

test("tail events have a list of traces", async () => {
  await deploy(
    "tailing",
    `addEventListener("tail", (event) => {
      if (event.events !== event.traces || event.events[0].scriptName !== "other") throw new Error("not so");
      throw new Error("so");
    });`,
  );
  await expect(run("tailing", "tail", [{ scriptName: "other" }])).rejects.toThrow(/^(?!not).*so/);
});

test("messages of a queue arrive as an event, whose promises decide on acknowledgement", async () => {
  const account = `/accounts/${hosting.account}`;
  const id = await hosting.createKv("taken");
  const made = await hosting.call("POST", `${account}/queues`, { queue_name: "older" });
  const queue = `${account}/queues/${(made.body.result as { queue_id: string }).queue_id}`;
  await deploy(
    "taking",
    `addEventListener("queue", (event) => {
      const { type, queue, messages } = event;
      event.waitUntil((async () => {
        await new Promise((resolve) => setTimeout(resolve, 20));
        for (const message of messages) {
          const { body, attempts } = message;
          await KV.put(body + attempts, [type, queue].join());
          if (body === "acknowledged") message.ack();
          if (body === "put back") attempts < 2 ? message.retry() : message.ack();
        }
        if (messages.some(({ body, attempts }) => body === "fails" && attempts < 3)) throw new Error("later");
      })());
    });
    addEventListener("fetch", (event) => {
      const { pathname } = new URL(event.request.url);
      event.respondWith((pathname === "/send"
        ? QUEUE.sendBatch([{ body: "acknowledged" }, { body: "put back" }, { body: "fails" }])
        : KV.list()).then((answer) => new Response(JSON.stringify(answer ?? null))));
    });`,
    [
      { type: "kv_namespace", name: "KV", namespace_id: id },
      { type: "queue", name: "QUEUE", queue_name: "older" },
    ],
  );
  const consumer = await hosting.call("POST", `${queue}/consumers`, {
    type: "worker",
    script_name: "taking",
    settings: { max_wait_time_ms: 0, max_retries: 5, retry_delay: 0, batch_size: 3 },
  });
  expect(consumer.body.errors).toEqual([]);
  expect((await hosting.ask("taking", "/send")).status).toBe(200);
  const names = async (): Promise<string[]> =>
    (JSON.parse((await hosting.ask("taking", "/")).body) as { keys: { name: string }[] }).keys.map(
      ({ name }) => name,
    );
  const expected = ["acknowledged1", "fails1", "fails2", "fails3", "put back1", "put back2"];
  await vi.waitFor(async () => expect(await names()).toEqual(expected));
});

describe("PUT …/content", () => {
  const put = async (
    name: string,
    metadata: object | undefined,
    headers: Record<string, string> = {},
  ): Promise<{ status: number; body: { errors: unknown; messages: unknown } }> => {
    const form = new FormData();
    if (metadata !== undefined) form.set("metadata", JSON.stringify(metadata));
    const source = `addEventListener("fetch", (event) => event.respondWith(new Response("listens " + TEXT)));`;
    form.set("worker.js", new File([source], "worker.js", { type: "application/javascript" }));
    const response = await fetch(
      `${hosting.ready.api}/accounts/${hosting.account}/workers/scripts/${name}/content`,
      { method: "PUT", headers: { authorization: `Bearer ${ownerToken}`, ...headers }, body: form },
    );
    return { status: response.status, body: (await response.json()) as never };
  };
  const both = { "cf-worker-main-module-part": "", "cf-worker-body-part": "worker.js" };

  test.each([
    ["the metadata", { body_part: "worker.js" }, {}],
    ["a header", undefined, both],
  ])("takes the part that %s names, also of a script that was a module", async (_what, metadata, headers) => {
    await hosting.deploy("replaced", {
      code: `export default { fetch: (_request, env) => new Response("exports " + env.TEXT) };`,
      bindings: [{ type: "plain_text", name: "TEXT", text: "kept" }],
    });
    expect((await hosting.ask("replaced")).body).toBe("exports kept");
    expect(await put("replaced", metadata, headers)).toMatchObject({ status: 200, body: { messages: [] } });
    expect((await hosting.ask("replaced")).body).toBe("listens kept");
  });

  test("names unsupported features, and refuses a metadata without an entry", async () => {
    const more = await put("replaced", { body_part: "worker.js", compatibility_date: "2025-01-01" });
    expect(more.body.messages).toMatchObject([
      { message: expect.stringContaining('"compatibility_date", which was ignored') },
    ]);
    expect(await put("replaced", { body_part: "other.js" })).toMatchObject({
      status: 400,
      body: { errors: [{ message: expect.stringContaining('Expected a part "other.js"') }] },
    });
    expect(await put("replaced", {})).toMatchObject({
      status: 400,
      body: {
        errors: [
          { message: expect.stringContaining("for main_module, or of the script's one file for body_part") },
        ],
      },
    });
  });
});

test("an event without a listener is refused", async () => {
  await expect(deploy("none", `const nothing = 1;`)).rejects.toThrow("No event handlers were registered");
  await expect(deploy("module", `export default {};`)).rejects.toThrow("SyntaxError");
});

test("wrangler deploys one", async () => {
  const server: TestServer = await startTestServer();
  const project = new Project(server);
  try {
    project.write({
      "wrangler.json": {
        name: "old",
        main: "index.js",
        compatibility_date: "2025-01-01",
        vars: { WORD: "hello" },
      },
      "index.js": `addEventListener("fetch", (event) => event.respondWith(new Response(WORD + " " + new URL(event.request.url).pathname)));
          addEventListener("scheduled", (event) => event.waitUntil(Promise.resolve(event.cron)));`,
    });
    await project.run(["deploy"]);
    expect((await ask(server, "old", "/you")).body).toBe("hello /you");
    project.write({
      "index.js": `addEventListener("fetch", (event) => event.respondWith(new Response("again " + WORD)));`,
    });
    await project.run(["deploy"]);
    expect((await ask(server, "old")).body).toBe("again hello");
  } finally {
    project.remove();
    await server.close(0);
  }
}, 300_000);
