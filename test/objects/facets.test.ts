import { afterAll, beforeAll, expect, it } from "vitest";
import { startHosting, type Hosting } from "../runtime/platform.ts";

/** Facets that an object opens for itself, of classes of its script. */
const code = `import { DurableObject, WorkerEntrypoint } from "cloudflare:workers";
let made = 0;
export class Child extends DurableObject {
  constructor(ctx, env) {
    super(ctx, env);
    this.serial = ++made;
    ctx.storage.sql.exec("create table if not exists log (text)");
  }
  add(text) { this.ctx.storage.sql.exec("insert into log values (?)", text); return this.all(); }
  all() { return this.ctx.storage.sql.exec("select text from log order by rowid").toArray().map(({ text }) => text); }
  about() { return { id: String(this.ctx.id), name: this.ctx.id.name ?? null, props: this.ctx.props, serial: this.serial }; }
  get title() { return "child"; }
  async twice(f) { return (await f(1)) + (await f(2)); }
  async fetch(request) { return new Response(request.method + " " + new URL(request.url).pathname + " " + await request.text()); }
  async out() { return this.env.ROOMS.getByName("other").plain(); }
  boom() { throw Object.assign(new RangeError("child"), { detail: 1 }); }
  alarm() {}
  setAlarm() { return this.ctx.storage.setAlarm(Date.now() + 1000); }
  grand(depth) { return depth === 0 ? "bottom" : this.ctx.facets.get("g", () => ({ class: this.ctx.exports.Child })).grand(depth - 1); }
}
export class Named extends WorkerEntrypoint {}
export class Room extends DurableObject {
  child(name = "c", options = {}) {
    return this.ctx.facets.get(name, () => ({ class: this.ctx.exports.Child, ...options }));
  }
  plain() { return "plain"; }
  add(name, text) { return this.child(name).add(text); }
  own() { this.ctx.storage.sql.exec("create table if not exists log (text)"); return this.ctx.storage.sql.exec("select count(*) as n from log").one().n; }
  async uses() {
    const child = this.child("u", { class: this.ctx.exports.Child({ props: { a: 1 } }) });
    return {
      title: await child.title, twice: await child.twice((n) => n * 10),
      fetched: await (await child.fetch("http://child/path", { method: "PUT", body: "body" })).text(),
      out: await child.out(), about: await child.about(),
      boom: await child.boom().catch((e) => ({ text: e.name + ": " + e.message, detail: e.detail })),
      absent: await child.absent().catch((e) => e.message), alarm: await child.setAlarm().catch((e) => e.message),
    };
  }
  async ids() {
    const other = this.env.ROOMS.idFromName("named");
    const [own, chosen, text] = [this.child("own"), this.child("chosen", { id: other }), this.child("text", { id: "a text" })];
    return [(await own.about()).id === String(this.ctx.id), (await chosen.about()).name, (await text.about()).id];
  }
  async restarts() {
    const child = this.child("r");
    await child.add("kept");
    const before = (await child.about()).serial;
    this.ctx.facets.abort("r", new Error("aborted on purpose"));
    const broken = await child.all().catch((e) => e.message);
    const after = this.child("r");
    const kept = await after.all();
    const isNew = (await after.about()).serial > before;
    this.ctx.facets.delete("r");
    return { broken, kept, isNew, deleted: await this.child("r").all() };
  }
  grand(depth) { return this.child("g").grand(depth); }
  async wrong() { return this.ctx.facets.get("w", () => ({ class: class extends DurableObject {} })).all(); }
  exportsOf() { return Object.keys(this.ctx.exports).sort(); }
  entrypoint() { return this.ctx.exports.Named.hello(); }
}
export default { async fetch(request, env) {
  const [, room, method, ...args] = new URL(request.url).pathname.split("/");
  try { return Response.json(await env.ROOMS.getByName(room)[method](...args) ?? null); }
  catch (error) { return Response.json({ error: error.name + ": " + error.message }); }
} };`;

let hosting: Hosting;
beforeAll(async () => {
  hosting = await startHosting();
  await hosting.deploy("rooms", {
    code,
    bindings: [{ type: "durable_object_namespace", name: "ROOMS", class_name: "Room" }],
    metadata: { migrations: { new_tag: "v1", new_sqlite_classes: ["Room"] } },
  });
});
afterAll(async () => hosting?.close(0));
const ask = async (path: string): Promise<unknown> => {
  const { status, body } = await hosting.ask("rooms", path);
  expect(`${status} ${body}`).toMatch(/^200 /);
  return JSON.parse(body) as unknown;
};

it("facets have databases of their own, which outlive the object's process", async () => {
  expect(await ask("/one/add/a/first")).toEqual(["first"]);
  expect(await ask("/one/add/b/other")).toEqual(["other"]);
  expect(await ask("/one/own")).toBe(0);
  for (const pid of hosting.services.objectCells.pids) process.kill(pid, "SIGKILL");
  await expect.poll(() => ask("/one/add/a/second")).toEqual(["first", "second"]);
});

it("their methods, properties, functions and requests work, and what they call is of the caller's run", async () => {
  expect(await ask("/uses/uses")).toEqual({
    title: "child",
    twice: 30,
    fetched: "PUT /path body",
    out: "plain",
    about: expect.objectContaining({ props: { a: 1 }, name: "uses" }),
    boom: { text: "RangeError: child", detail: 1 },
    absent: 'The RPC receiver does not implement the method "absent".',
    alarm: "Facets currently cannot set alarms.",
  });
});

it("an id is the object's, another object's, or a text", async () => {
  expect(await ask("/ids/ids")).toEqual([true, "named", "a text"]);
});

it("abort starts a facet again, and delete removes its data", async () => {
  expect(await ask("/restarts/restarts")).toEqual({
    broken: "aborted on purpose",
    kept: ["kept"],
    isNew: true,
    deleted: [],
  });
});

it("facets have facets, as deep as workerd lets them", async () => {
  expect(await ask("/deep/grand/1")).toBe("bottom");
  expect(await ask("/deep/grand/9")).toEqual({ error: expect.stringMatching(/depth|nest/i) });
});

it("other classes and other exports are refused by name", async () => {
  expect(await ask("/wrong/wrong")).toEqual({
    error:
      "TypeError: Expected a class of ctx.exports for the class of a facet, such as ctx.exports.MyClass.",
  });
  expect(await ask("/wrong/exportsOf")).toEqual(["Child", "Room"]);
  expect(await ask("/wrong/entrypoint")).toEqual({
    error: "Error: ctx.exports.Named.hello() is not available here",
  });
});
