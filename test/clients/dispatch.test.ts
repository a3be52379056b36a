import { NotFoundError, type Cloudflare } from "cloudflare";
import { afterAll, beforeAll, expect, it } from "vitest";
import { dispatchOperations } from "../../src/workers/dispatch/api.ts";
import { usageOperations } from "../../src/workers/dispatch/api-usage.ts";
import { operations } from "../../src/capabilities.ts";
import { recordingClient } from "../helpers/recording-client.ts";
import { startTestServer, type TestServer } from "../helpers/server.ts";

/** The official client manages dispatch namespaces and the scripts of customers in them. */
let server: TestServer;
let client: Cloudflare;
let called: Set<string>;
let account_id: string;
const dispatch_namespace = "production";
let base: string;

const code = (text: string): string =>
  `export default { async fetch() { return new Response(${JSON.stringify(text)}); } };`;
const module = (text = "hello") =>
  new File([code(text)], "main.mjs", { type: "application/javascript+module" });
const metadata = { main_module: "main.mjs", compatibility_date: "2026-01-01" };
type Loose = never;

beforeAll(async () => {
  server = await startTestServer();
  account_id = server.ready.account_id;
  base = `/accounts/${account_id}/workers/dispatch/namespaces`;
  ({ client, called } = recordingClient(server, operations));
});
afterAll(() => server.close(1000));

const put = async (name: string, more: object = {}) =>
  client.workersForPlatforms.dispatch.namespaces.scripts.update(name, {
    account_id,
    dispatch_namespace,
    metadata: { ...metadata, ...more },
    files: [module()],
  });
interface Listed {
  result: { script: { id: string; tags: string[] } }[];
  result_info: Record<string, number>;
}
const list = async (query = ""): Promise<Listed> =>
  client.get<Listed>(`${base}/${dispatch_namespace}/scripts${query}`);
const names = ({ result }: Listed): string[] => result.map(({ script }) => script.id);

it("namespaces are created, read and deleted", async () => {
  const { namespaces } = client.workersForPlatforms.dispatch;
  const made = await namespaces.create({ account_id, name: "staging" });
  expect(made).toMatchObject({ namespace_name: "staging", script_count: 0, trusted_workers: false });
  expect(await namespaces.get("staging", { account_id })).toEqual(made);
  await expect(namespaces.create({ account_id, name: "staging" })).rejects.toMatchObject({
    errors: [{ code: 100120 }],
  });
  await client.put(`${base}/staging`, { body: { name: "renamed" } });
  await client.patch(`${base}/renamed`, { body: { trusted_workers: true } });
  expect(await Array.fromAsync(namespaces.list({ account_id }))).toMatchObject([
    { namespace_id: made.namespace_id, namespace_name: "renamed", trusted_workers: true },
  ]);
  expect(await namespaces.delete("renamed", { account_id })).toBeNull();
  await expect(namespaces.get("renamed", { account_id })).rejects.toMatchObject({
    errors: [{ code: 100119 }],
  });
  await namespaces.create({ account_id, name: dispatch_namespace });
});

it("scripts are uploaded, read, listed with pages and tags, and deleted", async () => {
  const { scripts } = client.workersForPlatforms.dispatch.namespaces;
  for (const [name, tags] of [
    ["a", ["free", "eu"]],
    ["b", ["free"]],
    ["c", ["paid"]],
  ] as const)
    expect(await put(name, { tags: [...tags] })).toMatchObject({ id: name, tags });
  expect(await scripts.get("a", { account_id, dispatch_namespace })).toMatchObject({
    script: { id: "a", has_modules: true },
    dispatch_namespace,
  });
  const page = await list("?page=2&per_page=2");
  expect([names(page), page.result_info]).toMatchObject([["c"], { total_count: 3, total_pages: 2 }]);
  expect(names(await list("?tags=free:yes"))).toEqual(["a", "b"]);
  expect(names(await list("?tags=free:yes&name=B"))).toEqual(["b"]);
  expect(names(await list("?tags=free:yes,eu:no"))).toEqual(["b"]);
  expect(await scripts.delete("a", { account_id, dispatch_namespace })).toBeNull();
  const gone = scripts.get("a", { account_id, dispatch_namespace });
  await expect(gone).rejects.toThrow(NotFoundError);
  await expect(gone).rejects.toMatchObject({ errors: [{ code: 10092 }] });

  // The colon is encoded, as in the specification.
  await put("d", { tags: ["free"] });
  const deleted = await client.delete(`${base}/${dispatch_namespace}/scripts?tags=free%3Ayes&limit=1`);
  expect(deleted).toMatchObject({ deleted: [{ id: "b" }], deleted_count: 1, has_more: true, result: null });
  await client.delete(`${base}/${dispatch_namespace}/scripts?tags=free%3Ayes`);
  expect(names(await list())).toEqual(["c"]);
  await expect(client.delete(`${base}/${dispatch_namespace}/scripts`)).rejects.toMatchObject({ status: 400 });
});

it("a script's content, settings, bindings, secrets and tags are read and changed", async () => {
  const { scripts } = client.workersForPlatforms.dispatch.namespaces;
  const of = { account_id, dispatch_namespace };
  await put("tenant", { bindings: [{ type: "plain_text", name: "A", text: "a" }], tags: ["one"] });
  await scripts.content.update("tenant", {
    ...of,
    metadata: { main_module: "main.mjs" },
    files: [module("changed")],
  });
  const content = await (await scripts.content.get("tenant", of)).text();
  expect(content).toContain(code("changed"));
  const bindings = async () => Array.fromAsync(scripts.bindings.get("tenant", of));
  expect(await bindings()).toEqual([{ type: "plain_text", name: "A", text: "a" }]);

  const edited = await scripts.settings.edit("tenant", {
    ...of,
    settings: { bindings: [{ type: "plain_text", name: "B", text: "b" }], tags: ["two"] },
  });
  expect(edited).toMatchObject({ bindings: [{ name: "B" }], tags: ["two"] });
  expect(await scripts.settings.get("tenant", of)).toEqual(edited);

  const secret = { ...of, script_name: "tenant" };
  await scripts.secrets.update("tenant", { ...of, name: "S", text: "s", type: "secret_text" });
  expect(await scripts.secrets.get("S", secret)).toEqual({ name: "S", type: "secret_text" });
  expect(await Array.fromAsync(scripts.secrets.list("tenant", of))).toHaveLength(1);
  await scripts.secrets.bulkUpdate("tenant", {
    ...of,
    secrets: { T: { name: "T", text: "t", type: "secret_text" } },
  });
  expect(await scripts.secrets.delete("S", secret)).toBeNull();
  expect((await bindings()).map(({ name }) => name)).toEqual(["B", "T"]);

  expect(await Array.fromAsync(scripts.tags.update("tenant", { ...of, body: ["x"] }))).toEqual(["x"]);
  await client.put(`${base}/${dispatch_namespace}/scripts/tenant/tags/y`);
  expect(await Array.fromAsync(scripts.tags.list("tenant", of))).toEqual(["x", "y"]);
  expect(await scripts.tags.delete("x", secret)).toBeNull();
});

it("a script's static assets are deployed", async () => {
  const { scripts } = client.workersForPlatforms.dispatch.namespaces;
  const hash = "fedcba9876543210fedcba9876543210";
  const session = await scripts.assetUpload.create("site", {
    account_id,
    dispatch_namespace,
    manifest: { "/index.html": { hash, size: 2 } },
  });
  const uploaded = await client.workers.assets.upload.create(
    { account_id, base64: true, body: { [hash]: Buffer.from("hi").toString("base64") } } as Loose,
    { headers: { authorization: `Bearer ${session.jwt}` } },
  );
  const made = await put("site", {
    assets: { jwt: uploaded.jwt },
    bindings: [{ type: "assets", name: "ASSETS" }],
  });
  expect(made).toMatchObject({ has_assets: true });
});

it("the usage of a namespace is empty before its customers run", async () => {
  expect(await client.get(`${base}/${dispatch_namespace}/usage?order=faults`)).toMatchObject({
    result: [],
    result_info: { total_count: 0 },
  });
  await put("idle");
  const usage = `${base}/${dispatch_namespace}/scripts/idle/usage`;
  expect(await client.get(usage)).toMatchObject({ result: { requests: 0, faults: 0, last_fault: null } });
  await expect(client.get(usage.replace("idle", "gone"))).rejects.toMatchObject({
    errors: [{ code: 10092 }],
  });
});

it("every operation has been called", () => {
  const wanted = [...dispatchOperations, ...usageOperations].map(({ id }) => id);
  expect(wanted.filter((id) => !called.has(id))).toEqual([]);
});
