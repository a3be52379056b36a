import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { temporaryFolder } from "../helpers/process.ts";
import { ownerToken } from "../helpers/server.ts";
import { startHosting, uploadForm, type Hosting } from "../runtime/platform.ts";

/** Migrations of classes of Durable Objects, with the public codes, and the namespaces in the API. */
let hosting: Hosting;
const dataDir = temporaryFolder();
beforeAll(async () => (hosting = await startHosting({ ephemeral: false, dataDir })));
afterAll(async () => hosting?.close(0));

const classes = (...names: string[]): string => `import { DurableObject } from "cloudflare:workers";
class Any extends DurableObject {
  add(n) { const sum = (this.ctx.storage.kv.get("n") ?? 0) + n; this.ctx.storage.kv.put("n", sum); return sum; }
  async old(n) { await this.ctx.storage.put("n", n); return this.ctx.storage.get("n"); }
  sql() { return this.ctx.storage.sql.exec("select 1 as one").one(); }
  kv() { return this.ctx.storage.kv.get("n"); }
}
${names.map((name) => `export class ${name} extends Any {}`).join("\n")}
export default { async fetch(request, env) {
  const [, binding, method, arg] = new URL(request.url).pathname.split("/");
  try { return Response.json(await env[binding].getByName("one")[method](Number(arg))); }
  catch (error) { return Response.json(error.message); }
} };`;
const binding = (name: string, class_name: string, more = {}) => ({
  type: "durable_object_namespace",
  name,
  class_name,
  ...more,
});

interface Given {
  names: string[];
  bindings?: object[];
  migrations?: object;
}
async function upload(
  script: string,
  { names, bindings = [], migrations }: Given,
  path = `/accounts/${hosting.account}/workers/scripts/${script}`,
): Promise<{ status: number; error: string }> {
  const metadata = migrations === undefined ? {} : { migrations };
  const body = uploadForm({ code: classes(...names), bindings: bindings as never, metadata });
  const headers = { authorization: `Bearer ${ownerToken}` };
  const response = await fetch(`${hosting.ready.api}${path}`, { method: "PUT", headers, body });
  const { errors } = (await response.json()) as { errors: { code: number; message: string }[] };
  const [error] = errors;
  return { status: response.status, error: error === undefined ? "" : `${error.code} ${error.message}` };
}
const ok = { status: 200, error: "" };
const refused = (error: RegExp, status = 400) => ({ status, error: expect.stringMatching(error) as string });
const ask = async (script: string, path: string): Promise<unknown> =>
  JSON.parse((await hosting.ask(script, path)).body) as unknown;
const base = () => `/accounts/${hosting.account}/workers`;
const list = async () => {
  const { body } = await hosting.call("GET", `${base()}/durable_objects/namespaces`);
  return body.result as { id: string; name: string; script: string; class: string; use_sqlite: boolean }[];
};

it("a class comes into being with its upload, and keeps its data over renames and transfers", async () => {
  const bindings = [binding("A", "A")];
  expect(await upload("one", { names: ["A"], bindings })).toEqual(
    refused(/^10061 Cannot create binding for class 'A' because it is not currently configured/),
  );
  const created = { new_tag: "v1", new_sqlite_classes: ["A"] };
  expect(await upload("one", { names: ["A"], bindings, migrations: created })).toEqual(ok);
  expect(await ask("one", "/A/add/5")).toBe(5);
  const { id } = (await list())[0]!;
  expect(await list()).toEqual([{ id, name: "one_A", script: "one", class: "A", use_sqlite: true }]);
  const service = await hosting.call("GET", `${base()}/services/one`);
  expect(service.body.result.default_environment.script.migration_tag).toBe("v1");

  const renamed = { old_tag: "v1", new_tag: "v2", steps: [{ renamed_classes: [{ from: "A", to: "B" }] }] };
  expect(await upload("one", { names: ["B"], bindings: [binding("A", "B")], migrations: renamed })).toEqual(
    ok,
  );
  expect(await ask("one", "/A/add/1")).toBe(6);

  const transferred_classes = [{ from: "B", from_script: "one", to: "C" }];
  const moved = { new_tag: "m1", transferred_classes };
  expect(await upload("two", { names: ["C"], bindings: [binding("X", "C")], migrations: moved })).toEqual(ok);
  expect(await ask("two", "/X/add/1")).toBe(7);
  expect(await list()).toEqual([{ id, name: "two_C", script: "two", class: "C", use_sqlite: true }]);
  // The script that gave it away still reaches it: bindings lead to namespaces.
  expect(await ask("one", "/A/add/1")).toBe(8);
  const { body } = await hosting.call("GET", `${base()}/scripts/two/settings`);
  expect(body.result.bindings).toEqual([{ ...binding("X", "C"), namespace_id: id }]);
});

it("migrations are refused with the public codes, and change nothing then", async () => {
  const first = { new_tag: "v1", new_sqlite_classes: ["A"] };
  expect(await upload("codes", { names: ["Other"], migrations: first })).toEqual(refused(/^10070 .*'A'/));
  expect(await upload("codes", { names: ["A"], migrations: first })).toEqual(ok);
  expect(await upload("codes", { names: ["A"], migrations: first })).toEqual(
    refused(/^10079 Migration tag precondition failed; current tag is v1$/, 412),
  );
  const then = (step: object) => ({ old_tag: "v1", new_tag: "v2", steps: [step] });
  const cases: [object, string[], RegExp][] = [
    [{ new_classes: ["A"] }, ["A"], /^10074 /],
    [{ deleted_classes: ["Gone"] }, ["A"], /^10073 /],
    [{ renamed_classes: [{ from: "Gone", to: "B" }] }, ["A", "B"], /^10073 /],
    [{ transferred_classes: [{ from: "A", from_script: "nowhere", to: "B" }] }, ["A", "B"], /^10073 /],
    [{ new_classes: ["B"], new_sqlite_classes: ["B"] }, ["A", "B"], /^10021 class 'B' cannot be the target/],
    [{ renamed_classes: [{ from: "A", to: "B" }] }, ["A"], /^10070 /],
    [{ unheard_of: ["A"] }, ["A"], /^9207 .*unheard_of/],
  ];
  for (const [step, names, error] of cases)
    expect(await upload("codes", { names, migrations: then(step) })).toEqual(refused(error));
  expect(await upload("codes", { names: ["B"] })).toEqual(refused(/^10064 .*does not export class 'A'/));
  const body = uploadForm({ code: classes("A"), metadata: { migrations: then({ new_classes: ["B"] }) } });
  const headers = { authorization: `Bearer ${ownerToken}` };
  const url = `${hosting.ready.api}${base()}/scripts/codes/versions`;
  const version = (await (await fetch(url, { method: "POST", headers, body })).json()) as {
    errors: { code: number }[];
  };
  expect(version.errors[0]!.code).toBe(10211);
  expect((await list()).filter(({ script }) => script === "codes").map((each) => each.class)).toEqual(["A"]);
});

it("a class without SQL refuses SQL with the public text", async () => {
  const migrations = { new_tag: "v1", new_classes: ["Old"] };
  const given = { names: ["Old"], bindings: [binding("OLD", "Old")], migrations };
  expect(await upload("legacy", given)).toEqual(ok);
  expect(await ask("legacy", "/OLD/old/3")).toBe(3);
  expect(await ask("legacy", "/OLD/sql")).toMatch(/^SQL is not enabled for this Durable Object class\./);
  expect(await ask("legacy", "/OLD/kv")).toMatch(/^The storage.kv \(synchronous KV\) API is only available/);
});

it("deleted classes and scripts leave nothing", async () => {
  const migrations = { new_tag: "v1", new_sqlite_classes: ["A", "B"] };
  const bindings = [binding("A", "A"), binding("B", "B")];
  expect(await upload("gone", { names: ["A", "B"], bindings, migrations })).toEqual(ok);
  expect([await ask("gone", "/A/add/1"), await ask("gone", "/B/add/1")]).toEqual([1, 1]);
  const idOf = async (name: string) => (await list()).find((each) => each.name === name)!.id;
  const folders = [await idOf("gone_A"), await idOf("gone_B")].map((id) => join(dataDir, "objects", id));
  expect(folders.map((folder) => existsSync(folder))).toEqual([true, true]);
  const objects = await hosting.call(
    "GET",
    `${base()}/durable_objects/namespaces/${await idOf("gone_A")}/objects`,
  );
  expect(objects.body.result).toEqual([
    {
      id: expect.stringMatching(/^[0-9a-f]{64}$/) as string,
      hasStoredData: true,
      storedBytes: expect.any(Number) as number,
    },
  ]);

  const deleted = { old_tag: "v1", new_tag: "v2", deleted_classes: ["A"] };
  expect(await upload("gone", { names: ["B"], bindings, migrations: deleted })).toEqual(
    refused(/^10061 .*'A'/),
  );
  expect(await upload("gone", { names: ["B"], bindings: [bindings[1]!], migrations: deleted })).toEqual(ok);
  await expect.poll(() => folders.map((folder) => existsSync(folder))).toEqual([false, true]);
  expect(await ask("gone", "/B/add/1")).toBe(2);
  expect((await hosting.call("DELETE", `${base()}/scripts/gone`)).status).toBe(200);
  await expect.poll(() => folders.map((folder) => existsSync(folder))).toEqual([false, false]);
  // A new script of the same name begins without data.
  const again = {
    names: ["A"],
    bindings: [bindings[0]!],
    migrations: { new_tag: "v1", new_sqlite_classes: ["A"] },
  };
  expect(await upload("gone", again)).toEqual(ok);
  expect(await ask("gone", "/A/add/1")).toBe(1);
});

it("another script binds a class by its script, a customer only its own", async () => {
  const migrations = { new_tag: "v1", new_sqlite_classes: ["Shared"] };
  expect(
    await upload("owner", { names: ["Shared"], bindings: [binding("S", "Shared")], migrations }),
  ).toEqual(ok);
  const other = [binding("S", "Shared", { script_name: "owner" })];
  expect(await upload("user", { names: [], bindings: other })).toEqual(ok);
  expect([await ask("owner", "/S/add/1"), await ask("user", "/S/add/1")]).toEqual([1, 2]);

  await hosting.createNamespace("customers");
  const path = (name: string) => `${base()}/dispatch/namespaces/customers/scripts/${name}`;
  const namespace_id = (await list()).find(({ name }) => name === "owner_Shared")!.id;
  const { class_name: _, ...byId } = binding("S", "Shared", { namespace_id });
  for (const bindings of [other, [byId]])
    expect(await upload("c", { names: [], bindings }, path("c"))).toEqual(refused(/^10061 /));
  for (const name of ["c", "d"])
    expect(
      await upload(name, { names: ["Shared"], bindings: [binding("S", "Shared")], migrations }, path(name)),
    ).toEqual(ok);
  await hosting.deploy("dispatcher", {
    code: `export default { fetch: (request, env) => env.NS.get(new URL(request.url).searchParams.get("to")).fetch(request) };`,
    bindings: [{ type: "dispatch_namespace", name: "NS", namespace: "customers" }],
  });
  expect(await ask("dispatcher", "/S/add/1?to=c")).toBe(1);
  expect(await ask("dispatcher", "/S/add/1?to=c")).toBe(2);
  expect(await ask("dispatcher", "/S/add/1?to=d")).toBe(1);
  const { body } = await hosting.call("GET", path("c"));
  expect(body.result.script.migration_tag).toBe("v1");
});
