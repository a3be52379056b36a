import { afterAll, beforeAll, expect, it } from "vitest";
import { startHosting, type Hosting } from "../runtime/platform.ts";

/** Isolates keep stubs of the hosts of objects that they call often. A stub gives no rights, and none outlives its host. */
let hosting: Hosting;
beforeAll(async () => (hosting = await startHosting()));
afterAll(async () => hosting?.close(0));

const upload = (methods: string, before = "") => ({
  code: `import { DurableObject } from "cloudflare:workers";
${before}
export class Room extends DurableObject {
  count = 0;
  add() { return ++this.count; }
  store() { this.ctx.storage.kv.put("key", "value"); return "stored"; }
  ownId() { return this.ctx.id.toString(); }
  fail(text) { throw new Error(text); }
  async fetch() { return new Response(String(++this.count)); }
  async addTo(name, times) {
    const room = this.env.ROOMS.getByName(name);
    let last;
    for (let i = 0; i < times; i++) last = await room.add();
    return last;
  }
  async fetchFrom(name, times) {
    const room = this.env.ROOMS.getByName(name);
    let last;
    for (let i = 0; i < times; i++) last = Number(await (await room.fetch("http://object/")).text());
    return last;
  }
  ${methods}
}
export default { async fetch(request, env) {
  const { pathname, searchParams } = new URL(request.url);
  const [, name, method] = pathname.split("/");
  try { return Response.json(await env.ROOMS.getByName(name)[method](...JSON.parse(searchParams.get("args") ?? "[]"))); }
  catch (error) { return new Response("threw " + error.message); }
} };`,
  bindings: [{ type: "durable_object_namespace", name: "ROOMS", class_name: "Room" }],
  metadata: {
    migrations: { new_tag: "v1", new_sqlite_classes: ["Room"] },
  },
});
const ask = async (script: string, room: string, method: string, ...args: unknown[]): Promise<unknown> => {
  const { body } = await hosting.ask(
    script,
    `/${room}/${method}?args=${encodeURIComponent(JSON.stringify(args))}`,
  );
  return body.startsWith("threw") ? body : JSON.parse(body);
};
const often = 12;

it("each call through a kept stub arrives once, after errors of the object, too", async () => {
  await hosting.deploy(
    "often",
    upload(`async failing(name) {
    const room = this.env.ROOMS.getByName(name);
    const seen = [];
    for (let i = 0; i < 6; i++) seen.push(await room.fail("on purpose").catch((error) => error.message));
    return [...new Set(seen), await room.add()];
  }`),
  );
  expect(await ask("often", "one", "addTo", "two", often)).toBe(often);
  expect(await ask("often", "one", "fetchFrom", "two", often)).toBe(2 * often);
  expect(await ask("often", "one", "failing", "two")).toEqual(["on purpose", 2 * often + 1]);
  expect(await ask("often", "one", "addTo", "two", often)).toBe(3 * often + 1);
});

const namespaces = (more: string): string =>
  `/accounts/${hosting.account}/workers/durable_objects/namespaces/${more}`;

it("the first call after an object was deleted reaches the next instance", async () => {
  await hosting.deploy("deleted", upload(""));
  const namespace = hosting.services.objectNamespaces.list(hosting.account).at(-1)!.id;
  const id = (await ask("deleted", "two", "ownId")) as string;
  for (const method of ["addTo", "fetchFrom"]) {
    expect(await ask("deleted", "one", method, "two", often)).toBe(often);
    await ask("deleted", "two", "store");
    const { status } = await hosting.call("DELETE", namespaces(`${namespace}/objects/${id}`));
    expect(status).toBe(200);
    expect(await ask("deleted", "one", method, "two", 1)).toBe(1);
    expect(await ask("deleted", "one", method, "two", often)).toBe(often + 1);
    await ask("deleted", "two", "store");
    await hosting.call("DELETE", namespaces(`${namespace}/objects/${id}`));
  }
});

it("code that continues in the event of another object calls objects as before", async () => {
  const { metadata, ...rest } = upload(
    `async prepare() {
    const two = this.env.ROOMS.getByName("two");
    for (let i = 0; i < ${often}; i++) await two.add();
    late = opened.then(async () => [await two.add(), await (await two.fetch("http://object/")).text()]);
    return "prepared";
  }
  continue() { open(); return late; }`,
    `let late, open;
const opened = new Promise((resolve) => (open = resolve));`,
  );
  // Later dates let the code continue in the event that it belongs to.
  const flag = "no_handle_cross_request_promise_resolution";
  await hosting.deploy("carried", { ...rest, metadata: { ...metadata, compatibility_flags: [flag] } });
  await ask("carried", "one", "prepare");
  expect(await ask("carried", "other", "continue")).toEqual([often + 1, String(often + 2)]);
});

it("the stub of a host gives a script that gets hold of it no rights, and no token of a run", async () => {
  await hosting.deploy(
    "hostile",
    upload(
      `async attack() {
    const victim = this.env.ROOMS.getByName("victim");
    for (let i = 0; i < ${often}; i++) await victim.add();
    if (stub === undefined) return "no stub";
    const object = { id: await victim.ownId(), namespace: "", className: "Room", isSqlite: true, serial: 9e9, delayMs: 0, standing: "" };
    const forged = { run: "forged", script: "forged", object };
    const reference = JSON.stringify({ id: object.id, name: "victim" });
    const attempts = {
      reset: () => stub.reset("secret", "gone"),
      resetWithout: () => stub.reset(),
      remove: () => stub.remove(undefined),
      fire: () => stub.fire("forged", { retryCount: 0, order: "run", now: Date.now() }),
      call: () => stub.call("forged", ["add"], []),
      callWithEvent: () => stub.call(forged, ["add"], []),
      selvedgeCall: () => stub.selvedgeCall(["forged", "ROOMS", reference, ["add"], []]),
      fetch: () => stub.fetch("http://object/"),
      fetchAsEvent: () => stub.fetch("http://object/", { cf: { selvedgeRun: "forged", script: "forged", object } }),
      fetchAsCall: () => stub.fetch("http://object/", { cf: { selvedgeRun: "forged", binding: "ROOMS", reference } }),
      ctx: () => stub.ctx.id, env: () => stub.env.SECRET, alarm: () => stub.alarm(),
    };
    const results = {};
    for (const [name, attempt] of Object.entries(attempts)) {
      try {
        const result = await attempt();
        results[name] = result instanceof Response ? (result.headers.get("x-selvedge-error") === null ? "answered" : "refused") : String(result);
      } catch { results[name] = "refused"; }
    }
    return [results, await victim.add()];
  }
  async pollute(how) {
    const room = this.env.ROOMS.getByName("polluted");
    const fetchers = Object.getPrototypeOf(stub);
    const pollute = {
      all: () => Object.defineProperty(Object.prototype, "selvedgeCall", { configurable: true, get() { return spy; } }),
      fetchers: () => Object.defineProperty(fetchers, "selvedgeCall", { configurable: true, value: spy }),
      above: () => Object.setPrototypeOf(fetchers, new Proxy(Object.prototype, { get: (of, name, at) => name === "selvedgeCall" ? spy : Reflect.get(of, name, at) })),
    };
    pollute[how]();
    try { for (let i = 0; i < ${often}; i++) await room.add(); }
    finally {
      delete Object.prototype.selvedgeCall;
      delete fetchers.selvedgeCall;
      Object.setPrototypeOf(fetchers, Object.prototype);
    }
    return [await room.count0(), tokens];
  }
  count0() { return this.count; }`,
      `let stub;
const tokens = [];
function spy(...given) { tokens.push(JSON.stringify(given)); throw new Error("spied"); }
Object.defineProperty(Object.prototype, "then", { configurable: true, get() {
  if (Object.getPrototypeOf(this)?.constructor?.name === "Fetcher") stub = this;
  return undefined;
} });`,
    ),
  );
  const names = ["reset", "resetWithout", "remove", "fire", "call", "callWithEvent", "selvedgeCall", "fetch"];
  const refused = [...names, "fetchAsEvent", "fetchAsCall", "ctx", "env", "alarm"];
  expect(await ask("hostile", "one", "attack")).toEqual([
    Object.fromEntries(refused.map((name) => [name, "refused"])),
    often + 1,
  ]);
  for (const [i, how] of ["all", "fetchers", "above"].entries())
    expect(await ask("hostile", `polluting-${how}`, "pollute", how)).toEqual([(i + 1) * often, []]);
});
