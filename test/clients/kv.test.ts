import { toFile, type Cloudflare } from "cloudflare";
import { afterAll, beforeAll, expect, it } from "vitest";
import { kvOperations } from "../../src/products/kv/api.ts";
import { operations } from "../../src/capabilities.ts";
import { recordingClient } from "../helpers/recording-client.ts";
import { startTestServer, type TestServer } from "../helpers/server.ts";

/** The official client manages key-value namespaces and their values. */
let server: TestServer;
let client: Cloudflare;
let called: Set<string>;
let account_id: string;
let namespace_id: string;
type Loose = never;

beforeAll(async () => {
  server = await startTestServer();
  account_id = server.ready.account_id;
  ({ client, called } = recordingClient(server, operations));
  namespace_id = (await client.kv.namespaces.create({ account_id, title: "main" })).id;
});
afterAll(() => server.close(1000));

const put = async (key: string, body: object) =>
  client.kv.namespaces.values.update(key, { account_id, namespace_id, ...body } as Loose);
const get = async (key: string) => client.kv.namespaces.values.get(key, { account_id, namespace_id });

it("namespaces are created, renamed, listed and deleted", async () => {
  const { namespaces } = client.kv;
  const made = await namespaces.create({ account_id, title: "other" });
  expect(await namespaces.get(made.id, { account_id })).toEqual(made);
  await expect(namespaces.create({ account_id, title: "other" })).rejects.toMatchObject({
    errors: [{ code: 10014 }],
  });
  expect(await namespaces.update(made.id, { account_id, title: "renamed" })).toMatchObject({
    title: "renamed",
  });
  const listed = await Array.fromAsync(namespaces.list({ account_id, order: "title", per_page: 1 }));
  expect(listed.map(({ title }) => title)).toEqual(["main", "renamed"]);
  expect(await namespaces.delete(made.id, { account_id })).toBeNull();
});

it("values of every kind are stored under keys of every kind", async () => {
  const bytes = Uint8Array.from({ length: 300_000 }, (_, i) => i % 251);
  const key = "a/b c?#%2F é🙂";
  await put(key, { value: "text", metadata: { author: { name: "x" }, list: ["1", "2"] } });
  expect(await (await get(key)).text()).toBe("text");
  const metadata = { account_id, namespace_id };
  expect(await client.kv.namespaces.metadata.get(key, metadata)).toEqual({
    author: { name: "x" },
    list: ["1", "2"],
  });
  await put("bytes", { value: await toFile(bytes, "bytes") });
  expect(Buffer.from(await (await get("bytes")).arrayBuffer()).equals(bytes)).toBe(true);
  const expiration = Math.floor(Date.now() / 1000) + 600;
  await put("brief", { value: "v", metadata: '"a string"', expiration });
  expect((await get("brief")).headers.get("expiration")).toBe(String(expiration));
  expect(await client.kv.namespaces.metadata.get("brief", metadata)).toBe("a string");
  expect(await client.kv.namespaces.values.delete(key, metadata)).toBeNull();
  await expect(get(key)).rejects.toMatchObject({ status: 404, errors: [{ code: 10009 }] });
});

it("values are written and deleted in bulk, and keys are listed", async () => {
  const { keys } = client.kv.namespaces;
  const pairs = Array.from({ length: 25 }, (_, i) => ({
    key: `k/${String(i).padStart(2, "0")}`,
    value: i === 0 ? Buffer.from("zero").toString("base64") : `{"i":${i}}`,
    base64: i === 0,
    metadata: { i },
  }));
  expect(await keys.bulkUpdate(namespace_id, { account_id, body: pairs })).toEqual({
    successful_key_count: 25,
    unsuccessful_keys: [],
  });
  const listed = await Array.fromAsync(keys.list(namespace_id, { account_id, prefix: "k/", limit: 10 }));
  expect(listed.map(({ name }) => name)).toEqual(pairs.map(({ key }) => key));
  expect(listed[3]).toEqual({ name: "k/03", metadata: { i: 3 } });
  const read = await keys.bulkGet(namespace_id, {
    account_id,
    keys: ["k/01", "none"],
    type: "json",
    withMetadata: true,
  });
  expect(read).toEqual({ values: { "k/01": { value: { i: 1 }, metadata: { i: 1 } }, none: null } });
  const body = pairs.map(({ key }) => key);
  expect(await keys.bulkDelete(namespace_id, { account_id, body })).toMatchObject({
    successful_key_count: 25,
  });
  expect(await Array.fromAsync(keys.list(namespace_id, { account_id, prefix: "k/" }))).toEqual([]);
  const old = `/accounts/${account_id}/storage/kv/namespaces/${namespace_id}/bulk`;
  await client.delete(old, { body: ["bytes"] });
  await expect(get("bytes")).rejects.toMatchObject({ status: 404 });
});

it("every operation has been called", () => {
  const wanted = kvOperations.map(({ id }) => id);
  expect(wanted.filter((id) => !called.has(id))).toEqual([]);
});
