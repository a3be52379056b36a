import { afterEach, expect, it, vi } from "vitest";
import { ownerToken } from "../helpers/server.ts";
import { startHosting, type Hosting } from "../runtime/platform.ts";

/** Limits on disk, with scripts that write as fast as they can. */
const code = `import { DurableObject } from "cloudflare:workers";
const megabyte = (n) => new Uint8Array(1024 * 1024).fill(n);
export class Store extends DurableObject {
  constructor(ctx, env) { super(ctx, env); ctx.storage.sql.exec("create table if not exists blobs (n integer primary key, bytes blob)"); }
  write(n) { for (let i = 0; i < n; i++) this.ctx.storage.sql.exec("insert into blobs (bytes) values (?)", megabyte(i)); return this.count(); }
  count() { return this.ctx.storage.sql.exec("select count(*) as n from blobs").one().n; }
  clear() { this.ctx.storage.sql.exec("delete from blobs"); return this.count(); }
  deleteAll() { return this.ctx.storage.deleteAll(); }
  async flood() { for (;;) { this.write(1); await scheduler.wait(1); } }
  async floodFacet() { return this.ctx.facets.get("child", () => ({ class: this.ctx.exports.Store })).flood(); }
}
export default { async fetch(request, env) {
  const [, name, method, n] = new URL(request.url).pathname.split("/");
  try { return Response.json({ ok: await env.STORES.getByName(name)[method](Number(n)) }); }
  catch (error) { return Response.json({ error: error.message }); }
} };`;
const upload = {
  code,
  bindings: [{ type: "durable_object_namespace", name: "STORES", class_name: "Store" }],
  metadata: { migrations: { new_tag: "v1", new_sqlite_classes: ["Store"] } },
};
const full = "database or disk is full: SQLITE_FULL";

interface CallResult {
  ok?: unknown;
  error?: string;
}
let hosting: Hosting;
afterEach(async () => hosting.close(0));
async function start(limits: object): Promise<void> {
  hosting = await startHosting(limits);
  await hosting.deploy("stores", upload);
}

const ask = async (path: string): Promise<CallResult> =>
  JSON.parse((await hosting.ask("stores", path)).body) as CallResult;
const api = async <T>(path: string, method = "GET"): Promise<T> => {
  const base = `${hosting.ready.api}/accounts/${hosting.account}/workers/durable_objects/namespaces`;
  const response = await fetch(`${base}${path}`, {
    method,
    headers: { authorization: `Bearer ${ownerToken}` },
  });
  return ((await response.json()) as { result: T }).result;
};
const objects = async (): Promise<{ path: string; bytes: number }[]> => {
  const [{ id: namespace }] = (await api<{ id: string }[]>("")) as [{ id: string }];
  const all = await api<{ id: string; storedBytes: number }[]>(`/${namespace}/objects`);
  return all.map(({ id, storedBytes }) => ({ path: `/${namespace}/objects/${id}`, bytes: storedBytes }));
};
const removeAll = async (): Promise<void> => {
  for (const { path } of await objects()) await api(path, "DELETE");
};
const patience = { interval: 100 };

it("an object that floods its database, or one of a facet, is ended with the public text, then refused", async () => {
  await start({ objectMegabytesMax: 8 });
  for (const [name, method] of [
    ["one", "flood"],
    ["two", "floodFacet"],
  ] as const) {
    expect((await ask("/small/write/1")).error).toBeUndefined();
    expect((await ask(`/${name}/${method}`)).error).toBe(full);
    await vi.waitFor(async () => expect((await ask(`/${name}/count`)).error).toBe(full), patience);
    expect((await ask("/small/count")).error).toBeUndefined();
    await removeAll();
    expect(await ask(`/${name}/count`)).toEqual({ ok: 0 });
  }
});

it("an object above its limit can be read, and can write again in the place of deleted rows", async () => {
  await start({ objectMegabytesMax: 8 });
  expect((await ask("/slow/write/4")).error).toBeUndefined();
  expect((await ask("/slow/write/4")).error).toBeUndefined();
  // It is ended, and the data that was acknowledged stays.
  await vi.waitFor(async () => expect((await ask("/slow/count")).ok).toBe(8), patience);
  expect(await ask("/slow/clear")).toEqual({ ok: 0 });
  for (let i = 0; i < 10; i++) {
    expect(await ask("/slow/write/1")).toEqual({ ok: 1 });
    expect(await ask("/slow/clear")).toEqual({ ok: 0 });
    await new Promise((resolve) => setTimeout(resolve, 150)); // over several looks
  }
});

it("the objects of an account together have a limit; deleting some frees it for the others", async () => {
  await start({ objectAccountMegabytesMax: 24 });
  for (const name of ["a", "b", "c", "d"]) await ask(`/${name}/write/6`);
  await vi.waitFor(
    async () => {
      const answers = await Promise.all(["a", "b", "c", "d"].map(async (name) => ask(`/${name}/write/1`)));
      expect(answers.map(({ error }) => error)).toContain(full);
      // Between two looks each object writes a little, so that two of them fit into the limit.
    },
    { ...patience, interval: 500 },
  );
  for (const { path } of (await objects()).slice(0, 2)) await api(path, "DELETE");
  await vi.waitFor(async () => expect((await ask("/e/write/1")).error).toBeUndefined(), patience);
  await vi.waitFor(async () => {
    for (const name of ["a", "b", "c", "d"]) expect((await ask(`/${name}/count`)).error).toBeUndefined();
  }, patience);
});
