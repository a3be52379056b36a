import { createHash, createHmac } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "undici";
import { afterAll, beforeAll, expect, it } from "vitest";
import { Refusal } from "../../src/sandbox/errors.ts";
import { GatewayServer } from "../../src/sandbox/gateway/gateway-server.ts";
import type { RunHooks } from "../../src/sandbox/gateway/run-hooks.ts";
import { Traffic } from "../../src/sandbox/limits/traffic.ts";
import { cellHeaders, type LocalCall } from "../../src/sandbox/protocol.ts";
import { ObjectCalls } from "../../src/sandbox/gateway/object-calls.ts";
import type { ObjectReference } from "../../src/sandbox/protocol.ts";
import type { Caller } from "../../src/workers/binding.ts";
import { withoutVisitor } from "../../src/workers/runtime/run-root.ts";
import { startHosting, type Hosting } from "../runtime/platform.ts";

/** Messages from a cell are not trusted: the gateway checks each call against the caller's bindings. */
let hosting: Hosting;
beforeAll(async () => (hosting = await startHosting()));
afterAll(async () => hosting?.close(0));

const code = `import { DurableObject } from "cloudflare:workers";
export class Room extends DurableObject {
  secret() { return "of " + this.ctx.id.name; }
  async out() { return (await fetch("http://outside.example/")).text(); }
}
export default { async fetch(request, env) {
  const name = new URL(request.url).pathname.slice(1);
  return new Response(await env.ROOMS.getByName("x")[name]());
} };`;
const upload = {
  code,
  bindings: [{ type: "durable_object_namespace", name: "ROOMS", class_name: "Room" }],
  metadata: { migrations: { new_tag: "v1", new_sqlite_classes: ["Room"] } },
};

/** The id of a name in a namespace, as workerd makes it. */
function referenceOf(namespace: string, name: string): ObjectReference {
  const key = createHash("sha256").update(namespace).digest();
  const hmac = (data: string | Buffer): Buffer =>
    createHmac("sha256", key).update(data).digest().subarray(0, 16);
  const base = hmac(name);
  return { id: Buffer.concat([base, hmac(base)]).toString("hex"), name };
}

it("a call with another script's namespace, id or name is refused", async () => {
  for (const name of ["one", "two"]) await hosting.deploy(name, upload);
  const { scripts, objectNamespaces, runtime } = hosting.services;
  const accountId = hosting.account;
  const [one, two] = objectNamespaces.list(accountId);
  const callerOf = (name: string): Caller => {
    const live = scripts.live({ accountId }, name)!;
    return { accountId, scriptId: live.scriptId, scriptName: name, versionId: live.versionId };
  };
  const route = async (more: object) =>
    runtime.objects.route(
      {
        caller: callerOf("one"),
        isCustomer: false,
        root: withoutVisitor(),
        depth: 1,
        binding: { type: "durable_object_namespace", name: "ROOMS", namespace_id: one!.id },
        reference: referenceOf(one!.id, "x"),
        limits: { cpuMs: 1000, subRequests: 50 },
        outbound: undefined,
        span: undefined,
        ...more,
      },
      undefined,
      "secret",
    );
  expect(await route({})).toHaveProperty("token");
  const foreign = { type: "durable_object_namespace" as const, name: "ROOMS", namespace_id: two!.id };
  const gone = "The namespace of Durable Objects does not exist any more.";
  const invalid = "Durable Object ID is not valid for this namespace.";
  await expect(route({ reference: referenceOf(two!.id, "x") })).rejects.toThrow(invalid);
  await expect(route({ reference: { ...referenceOf(one!.id, "x"), name: "y" } })).rejects.toThrow(invalid);
  await expect(route({ caller: { ...callerOf("one"), accountId: "f".repeat(32) } })).rejects.toThrow(gone);
  await expect(
    route({ isCustomer: true, binding: foreign, reference: referenceOf(two!.id, "x") }),
  ).rejects.toThrow(gone);
  await expect(route({ binding: { ...foreign, namespace_id: "0".repeat(32) } })).rejects.toThrow(gone);
});

it("a script's own connection does not reach the processes of objects", async () => {
  // workerd's own sockets, which connect through the gateway as the system worker does.
  await hosting.deploy("connecting", {
    code: `const net = process.getBuiltinModule("node:n" + "et");
export default { fetch: (request) => new Promise((resolve) => {
  const host = new URL(request.url).pathname.slice(1);
  net.connect(80, host).on("connect", () => resolve(new Response("open"))).on("error", () => resolve(new Response("refused")));
}) };`,
    metadata: { compatibility_flags: ["nodejs_compat"] },
  });
  await hosting.deploy("called", upload);
  expect((await hosting.ask("called", "/secret")).body).toBe("of x");
  for (let slot = 0; slot < 4; slot++)
    for (const host of [`objects-${slot}`, `objects-${slot}.`, `objects-${slot}.undefined`])
      expect([host, (await hosting.ask("connecting", `/${host}`)).body]).toEqual([host, "refused"]);
  expect((await hosting.ask("called", "/secret")).body).toBe("of x");
});

it("no method that a script adds to prototypes gets the platform's stubs, or the token of a run", async () => {
  await hosting.deploy("target", {
    code: `import { WorkerEntrypoint } from "cloudflare:workers";
export default class extends WorkerEntrypoint { hello() { return "hello"; } get value() { return 7; } }`,
  });
  await hosting.deploy("polluting", {
    code: `import { DurableObject } from "cloudflare:workers";
export class Room extends DurableObject { secret() { return "of " + this.ctx.id.name; } get value() { return 8; } }
const seen = [];
const { getPrototypeOf } = Reflect, { defineProperty, prototype } = Object;
// A getter for each name that the platform might use; it answers as if the name were not there.
const names = ["call", "read", "fetch", "send", "connect", "dup", "run", "invoke", "reach"];
function pollute() {
  for (const name of names) defineProperty(prototype, name, { configurable: true, get() {
    if (this !== null && typeof this === "object" && getPrototypeOf(this)?.constructor?.name === "Fetcher") seen[seen.length] = name;
    return undefined;
  }, set(value) { defineProperty(this, name, { value, writable: true, configurable: true, enumerable: true }); } });
}
const clean = () => { for (const name of names) delete prototype[name]; };
export default { async fetch(request, env) {
  const attempts = [
    () => env.ROOMS.getByName("x").secret(), () => env.ROOMS.getByName("x").value,
    () => env.TARGET.hello(), () => env.TARGET.value,
  ];
  const results = [];
  for (const attempt of attempts) {
    pollute();
    let result;
    try { result = attempt(); } finally { clean(); }
    results.push(await result);
  }
  return Response.json({ results, seen });
} };`,
    bindings: [...upload.bindings, { type: "service", name: "TARGET", service: "target" }],
    metadata: upload.metadata,
  });
  const { status, body } = await hosting.ask("polluting");
  expect(status, body).toBe(200);
  expect(JSON.parse(body)).toEqual({ results: ["of x", 8, "hello", 7], seen: [] });
});

it("the token of a call serves once", () => {
  const calls = new ObjectCalls();
  const object = {
    id: "",
    namespace: "",
    className: "",
    isSqlite: true,
    serial: 0,
    delayMs: 0,
    standing: "",
  };
  let ends = 0;
  calls.expect({ run: "token", script: "s", object }, () => ends++);
  expect(calls.take("other")).toBeUndefined();
  expect(calls.take("token")).toMatchObject({ run: "token" });
  expect(calls.take("token")).toBeUndefined();
  calls.end("token");
  calls.end("token");
  expect(ends).toBe(1);
});

it("what a customer's object fetches goes through the outbound script, as the customer's own fetches", async () => {
  await hosting.createNamespace("shops");
  await hosting.deployCustomer("shops", "shop", upload);
  await hosting.deploy(
    "outbound",
    `export default { fetch: (request, env) => new Response("seen for " + env.who) };`,
  );
  await hosting.deploy("dispatcher", {
    code: `export default { fetch: (request, env) => env.NS.get("shop", {}, { outbound: { who: "shop" } }).fetch(request) };`,
    bindings: [
      {
        type: "dispatch_namespace",
        name: "NS",
        namespace: "shops",
        outbound: { worker: { service: "outbound" }, params: [{ name: "who" }] },
      },
    ],
  });
  expect((await hosting.ask("dispatcher", "/secret")).body).toBe("of x");
  expect((await hosting.ask("dispatcher", "/out")).body).toBe("seen for shop");
});

it("a run that a call in a cell began has the rights of that call only", async () => {
  const folder = mkdtempSync(join(tmpdir(), "gateway-"));
  const gateway = new GatewayServer("secret", new Traffic(), () => {});
  const path = join(folder, "gateway.sock");
  await gateway.listen(path);
  const client = new Client("http://gateway", { socketPath: path });
  const answering = (text: string): RunHooks => ({ fetch: (_url, _request, response) => response.end(text) });
  gateway.begin("caller", {
    ...answering("as the caller"),
    async object(binding) {
      if (binding !== "ROOMS") throw new Refusal(`no binding "${binding}"`);
      const hooks = answering("as the object");
      hooks.object = async (below) => {
        throw new Refusal(`no binding of the object "${below}"`);
      };
      return { hooks: async () => hooks } as never;
    },
  });
  const asked: string[] = [];
  let call: LocalCall | undefined;
  const above = new Map<string, LocalCall>();
  gateway.local = async (token) => {
    asked.push(token);
    return above.get(token) ?? call;
  };
  const reference = JSON.stringify({ id: "a".repeat(64) });
  const answer = async (token: string, localCall?: LocalCall): Promise<string> => {
    call = localCall;
    const headers = { [cellHeaders.run]: token };
    const response = await client.request({ method: "GET", path: "http://elsewhere.example/", headers });
    const refusal = response.headers[cellHeaders.error];
    return refusal === undefined ? response.body.text() : decodeURIComponent(String(refusal));
  };
  const tokens = Array.from({ length: 6 }, (_, i) => `local.${i}.${crypto.randomUUID()}`);
  const unknown = "This fetch belongs to no request in progress.";
  const named = { run: "caller", binding: "ROOMS", reference };
  expect(await answer(tokens[0]!)).toBe(unknown);
  expect(await answer(tokens[1]!, { ...named, run: "other" })).toBe(unknown);
  expect(await answer(tokens[2]!, { ...named, run: tokens[2]! })).toBe(unknown);
  expect(await answer(tokens[3]!, { ...named, binding: "OTHERS" })).toBe('no binding "OTHERS"');
  expect(await answer(tokens[4]!, { ...named, reference: '{"id":"../x"}' })).toContain(
    "64 hexadecimal digits",
  );
  expect(await answer(tokens[5]!, named)).toBe("as the object");
  expect(await answer(tokens[5]!)).toBe("as the object");
  expect(asked).toEqual(tokens);
  // Runs below others have the rights of the calls on the way, however many there are, and none without a beginning.
  const [one, two, three] = Array.from({ length: 3 }, (_, i) => `local.${i}.${crypto.randomUUID()}`);
  above.set(one!, { ...named, run: two! });
  above.set(two!, { ...named, run: one! });
  expect(await answer(one!)).toBe(unknown);
  expect(asked.length).toBeLessThan(30);
  above.set(two!, named);
  expect(await answer(three!, { ...named, run: one! })).toBe('no binding of the object "ROOMS"');
  asked.splice(tokens.length);
  for (const token of [
    "local.",
    "local./../?reset=x",
    `local.1.${"a".repeat(37)}`,
    `local.${crypto.randomUUID()}`,
  ])
    expect(await answer(token, named)).toBe(unknown);
  expect(asked).toHaveLength(tokens.length);
  await client.close();
  gateway.close();
  rmSync(folder, { recursive: true });
});

it("a customer that an object dispatches to does not run in the process of the account's objects", async () => {
  await hosting.createNamespace("others");
  await hosting.deployCustomer("others", "guest", {
    code: `export default { async fetch() { globalThis.count = (globalThis.count ?? 0) + 1; return new Response("guest " + globalThis.count); } };`,
  });
  await hosting.deploy("host", {
    code: `import { DurableObject } from "cloudflare:workers";
export class Room extends DurableObject { async fetch(request) { return this.env.NS.get("guest").fetch(request); } }
export default { fetch: (request, env) => env.ROOMS.getByName("x").fetch(request) };`,
    bindings: [...upload.bindings, { type: "dispatch_namespace", name: "NS", namespace: "others" }],
    metadata: upload.metadata,
  });
  const { customerCells } = hosting.services;
  const before = customerCells.counts.all;
  expect((await hosting.ask("host", "/")).body).toBe("guest 1");
  expect(customerCells.counts.all).toBeGreaterThan(before);
});
