import { execFile } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { Registry } from "prom-client";
import { afterAll, beforeAll, expect, it } from "vitest";
import { objectMetrics } from "../../src/workers/objects/metrics.ts";
import { ownerToken } from "../helpers/server.ts";
import { startHosting, type Hosting } from "../runtime/platform.ts";

/** Objects in the API and on the command line: lists, queries and deletion. */
const code = `import { DurableObject } from "cloudflare:workers";
let made = 0;
export class Room extends DurableObject {
  constructor(ctx, env) {
    super(ctx, env);
    this.serial = ++made;
  }
  write(text) {
    this.ctx.storage.kv.put("hidden", "value");
    this.ctx.storage.sql.exec("create table if not exists log (id integer primary key, text, data blob)");
    this.ctx.storage.sql.exec("insert into log (text, data) values (?, x'0102')", text);
    return this.serial;
  }
  index(text) {
    this.ctx.storage.sql.exec("create virtual table if not exists words using fts5(text)");
    this.ctx.storage.sql.exec("insert into words values (?)", text);
    return this.ctx.id.toString();
  }
  child() { return this.ctx.facets.get("c", () => ({ class: this.ctx.exports.Room })).write("in a facet"); }
  count() {
    try { return this.ctx.storage.sql.exec("select count(*) as n from log").one().n; } catch (error) { return error.message; }
  }
  serialOf() { return this.serial; }
  made() { return made; }
}
export default { async fetch(request, env) {
  const [, room, method, ...args] = new URL(request.url).pathname.split("/");
  try { return Response.json(await env.ROOMS.getByName(room)[method](...args)); }
  catch (error) { return Response.json({ error: error.message }); }
} };`;

let hosting: Hosting;
let namespace: string;
const path = (more = ""): string => `/accounts/${hosting.account}/workers/durable_objects/namespaces${more}`;
const ask = async (what: string): Promise<unknown> =>
  JSON.parse((await hosting.ask("rooms", what)).body) as unknown;
interface Listed {
  id: string;
  hasStoredData: boolean;
  storedBytes: number;
}
const list = async (): Promise<Listed[]> =>
  (await hosting.call("GET", path(`/${namespace}/objects`))).body.result as Listed[];
const query = async (id: string, sql: string, params?: unknown[]) =>
  hosting.call("POST", path(`/${namespace}/objects/${id}/query`), { sql, ...(params && { params }) });

beforeAll(async () => {
  hosting = await startHosting();
  await hosting.deploy("rooms", {
    code,
    bindings: [{ type: "durable_object_namespace", name: "ROOMS", class_name: "Room" }],
    metadata: { migrations: { new_tag: "v1", new_sqlite_classes: ["Room"] } },
  });
  namespace = hosting.services.objectNamespaces.list(hosting.account)[0]!.id;
});
afterAll(async () => hosting?.close(0));

const folderOf = (): string => join(hosting.services.objectFolders.path, namespace);
const endCells = (): void => {
  for (const pid of hosting.services.objectCells.pids) process.kill(pid, "SIGKILL");
};

it("a query reads what a live object has written, and does not run its code", async () => {
  await ask("/live/write/one");
  await ask("/live/write/two");
  const [object] = await list();
  expect(object).toMatchObject({ hasStoredData: true });
  expect(object!.storedBytes).toBeGreaterThan(4096);
  const { status, body } = await query(object!.id, "select id, text, data from log where text <> ?", ["two"]);
  expect([status, body.result]).toEqual([
    200,
    { columns: ["id", "text", "data"], rows: [[1, "one", [1, 2]]], truncated: false },
  ]);
  expect(await ask("/live/write/three")).toBe(1);
  expect((await query(object!.id, "select count(*) from log")).body.result).toMatchObject({ rows: [[3]] });
});

it("a query reads an object that is not in memory, also one whose process was killed", async () => {
  await ask("/killed/write/one");
  const objects = await list();
  endCells();
  await expect.poll(() => hosting.services.objectCells.pids).toEqual([]);
  for (const { id } of objects)
    expect((await query(id, "select text from log order by id limit 1")).body.result).toMatchObject({
      rows: [["one"]],
    });
  expect(hosting.services.objectCells.pids).toEqual([]);
});

it("a query searches a full-text table", async () => {
  const id = (await ask("/live/index/one-word")) as string;
  const { body } = await query(id, "select highlight(words, 0, '<', '>') from words where words match ?", [
    "word",
  ]);
  expect(body.result).toMatchObject({ rows: [["one-<word>"]] });
});

it.each([
  ["insert into log (text) values ('x')", /not authorized/],
  ["attach database '/tmp/x' as y", /not authorized/],
  ["pragma journal_mode = delete", /not authorized/],
  ["select * from _cf_KV", /prohibited|not authorized/],
  ["select load_extension('x')", /not authorized/],
  ["create temp table t (x)", /not authorized/],
  ["selec 1", /syntax error/],
  ["select 1; select 2", /Expected one statement/],
  ["select length(randomblob(200000000))", /too big/],
])("%s is refused", async (sql, message) => {
  const [object] = await list();
  const { status, body } = await query(object!.id, sql);
  expect([status, body.errors[0]?.code]).toEqual([400, 10021]);
  expect(body.errors[0]?.message).toMatch(message);
});

it("rows are limited, and a query that takes too much memory ends", async () => {
  const [object] = await list();
  const many = "with recursive n(i) as (select 1 union all select i + 1 from n) select i from n";
  const { body } = await query(object!.id, many);
  const { rows, truncated } = body.result as { rows: unknown[]; truncated: boolean };
  expect([rows.length, truncated]).toEqual([10_000, true]);
  const large =
    "with recursive n(i) as (select 1 union all select i + 1 from n) select max(b) over (order by b) from (select randomblob(1000) as b from n)";
  expect((await query(object!.id, large)).status).toBe(408);
});

it("an object is deleted with its facets; it is empty when it is called again", async () => {
  await ask("/gone/write/one");
  await ask("/gone/child");
  const before = await ask("/gone/serialOf");
  const { id } = hosting.services.objectNamespaces.find(namespace)!;
  const all = await list();
  const stored: string[] = [];
  for (const object of all) {
    const { body } = await query(object.id, "select count(*) from log");
    if ((body.result as { rows: number[][] }).rows[0]![0] === 1) stored.push(object.id);
  }
  const gone = stored.find((each) => existsSync(join(folderOf(), `${each}.2.sqlite`)))!;
  expect(id).toBe(namespace);
  const { status } = await hosting.call("DELETE", path(`/${namespace}/objects/${gone}`));
  expect(status).toBe(200);
  expect((await list()).map((each) => each.id)).not.toContain(gone);
  expect(readdirSync(folderOf()).filter((name) => name.startsWith(`${gone}.2`))).toEqual([]);
  expect(await ask("/gone/count")).toMatch(/no such table/);
  expect(await ask("/gone/serialOf")).not.toBe(before);
  expect((await hosting.call("DELETE", path(`/${namespace}/objects/${gone}`))).status).toBe(404);
});

it("an object that is not in memory is deleted without running its code", async () => {
  const before = await ask("/other/made");
  await ask("/asleep/write/one");
  expect(await ask("/other/made")).toBe((before as number) + 1);
  endCells();
  await expect.poll(() => hosting.services.objectCells.pids).toEqual([]);
  const objects = await list();
  for (const { id } of objects)
    expect((await hosting.call("DELETE", path(`/${namespace}/objects/${id}`))).status).toBe(200);
  expect(await list()).toEqual([]);
  // The script's isolate is new, and only this object has run in it.
  expect(await ask("/other/made")).toBe(1);
});

it("unknown objects, and ids of other namespaces, are not found", async () => {
  for (const id of ["0".repeat(64), "x"]) {
    expect((await query(id, "select 1")).status).toBe(404);
    expect((await hosting.call("DELETE", path(`/${namespace}/objects/${id}`))).status).toBe(404);
  }
});

it("an upload that is refused gives back the ids that it took", async () => {
  await ask("/live/write/one");
  const { objectCells } = hosting.services;
  const next = (): string => {
    const id = objectCells.newId(hosting.account);
    objectCells.giveBack(id);
    return id;
  };
  const before = next();
  const exported = ["A", "B", "C"].map((name) => `export class ${name} { fetch() {} }`).join("\n");
  const refused = hosting.deploy("refused", {
    code: `${exported}\nexport default { fetch() {} };`,
    metadata: { migrations: { new_tag: "v1", new_sqlite_classes: ["A", "B", "C", "Absent"] } },
  });
  await expect(refused).rejects.toThrow("that is not exported by script");
  expect(next()).toBe(before);
});

it("metrics count what is live, and what has run", async () => {
  const { objectCells, objectFolders, objectAlarms } = hosting.services;
  const registry = new Registry();
  for (const metric of objectMetrics(objectCells, objectFolders, objectAlarms))
    registry.registerMetric(metric);
  const valueOf = async (name: string): Promise<number | undefined> =>
    (await registry.getSingleMetric(`selvedge_${name}`)!.get()).values[0]?.value;
  const before = (await valueOf("object_events_total"))! + objectCells.events.calls;
  await ask("/counted/write/one");
  await ask("/counted/child");
  expect((await valueOf("object_events_total"))! + objectCells.events.calls).toBe(before + 2);
  // The object, and its facet.
  expect(await valueOf("objects_live")).toBeGreaterThanOrEqual(2);
  expect(await valueOf("object_cells")).toBe(1);
  expect(await valueOf("object_fsync_seconds")).toBeGreaterThan(0);
  const objects = await list();
  for (const { id } of objects) await hosting.call("DELETE", path(`/${namespace}/objects/${id}`));
});

it("the command line shows namespaces, objects and sizes", async () => {
  await ask("/shown/write/one");
  const run = async (...args: string[]): Promise<string> => {
    const command = [
      "bin/selvedge.js",
      "objects",
      ...args,
      "--api",
      hosting.ready.api,
      "--token",
      ownerToken,
    ];
    return (await promisify(execFile)(process.execPath, command)).stdout;
  };
  expect(await run()).toMatch(new RegExp(`^${namespace}  rooms Room  1 object  \\d+ KiB\n$`));
  const [object] = await list();
  expect(JSON.parse(await run(namespace, "--json"))).toEqual([
    { id: object!.id, storedBytes: object!.storedBytes },
  ]);
  await expect(run("0".repeat(32))).rejects.toThrow("has no namespace of Durable Objects");
});
