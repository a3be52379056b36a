import { afterAll, beforeAll, expect, it } from "vitest";
import { startTestServer, type TestServer } from "../helpers/server.ts";
import { ask, deploy } from "./harness.ts";

/** A key-value namespace in a script, through the edge. */
let server: TestServer;
let namespaceId: string;

/** Runs the code in the query with `KV`, and returns its result. */
const script = `
const show = (value) =>
  value instanceof Map ? { map: Object.fromEntries([...value].map(([k, v]) => [k, show(v)])) }
  : value instanceof ArrayBuffer ? { bytes: [...new Uint8Array(value)] }
  : value === undefined ? null
  : value;
const does = {
  async stream({ KV }, key) { return await new Response(await KV.get(key, "stream")).text(); },
  async putStream({ KV }, key, text) { await KV.put(key, new Response(text).body); },
  async putBytes({ KV }, key, bytes) { await KV.put(key, new Uint8Array(bytes)); },
  async large({ KV }, key, length) {
    await KV.put(key, new Uint8Array(length).fill(7));
    const bytes = new Uint8Array(await KV.get(key, "arrayBuffer"));
    return [bytes.length, bytes.every((byte) => byte === 7)];
  },
};
export default {
  async fetch(request, env) {
    const [method, ...args] = JSON.parse(new URL(request.url).searchParams.get("do"));
    try {
      const result = await (does[method] ? does[method](env, ...args) : env.KV[method](...args));
      return Response.json({ result: show(result) });
    } catch (error) {
      return Response.json({ error: error.message, name: error.name });
    }
  },
};`;

beforeAll(async () => {
  server = await startTestServer();
  const created = await server.call("POST", `/accounts/${server.ready.account_id}/storage/kv/namespaces`, {
    title: "bound",
  });
  namespaceId = created.body.result.id as string;
  const bindings = [{ type: "kv_namespace", name: "KV", namespace_id: namespaceId }];
  await deploy(server, "kv", script, { bindings });
});
afterAll(() => server.close(1000));

async function kv(...call: unknown[]): Promise<unknown> {
  const { body } = await ask(server, "kv", `/?do=${encodeURIComponent(JSON.stringify(call))}`);
  const answer = JSON.parse(body) as { result?: unknown; error?: string };
  if (answer.error !== undefined) throw new Error(answer.error);
  return answer.result;
}

it("reads values in every type", async () => {
  await kv("put", "json", '{"a":[1,"é"]}');
  expect(await kv("get", "json")).toBe('{"a":[1,"é"]}');
  expect(await kv("get", "json", "json")).toEqual({ a: [1, "é"] });
  expect(await kv("get", "json", { type: "json", cacheTtl: 60 })).toEqual({ a: [1, "é"] });
  expect(await kv("get", "json", "arrayBuffer")).toEqual({ bytes: [...Buffer.from('{"a":[1,"é"]}')] });
  expect(await kv("stream", "json")).toBe('{"a":[1,"é"]}');
  await kv("put", "empty", "");
  expect([await kv("get", "empty"), await kv("stream", "empty")]).toEqual(["", ""]);
  expect(await kv("get", "missing")).toBeNull();
  expect(await kv("getWithMetadata", "missing")).toEqual({ value: null, metadata: null, cacheStatus: null });
});

it("takes values in every type, small and large", async () => {
  await kv("putStream", "s", "from a stream");
  await kv("putBytes", "b", [0, 255, 128]);
  expect(await kv("get", "s")).toBe("from a stream");
  expect(await kv("get", "b", "arrayBuffer")).toEqual({ bytes: [0, 255, 128] });
  expect(await kv("large", "l", 3_000_000)).toEqual([3_000_000, true]);
  await kv("delete", "b");
  expect(await kv("get", "b")).toBeNull();
});

it("keeps metadata, reads many, and shows the same as the API", async () => {
  const metadata = { who: "é🙂", n: [1] };
  const expiration = Math.floor(Date.now() / 1000) + 1000;
  await kv("put", "m/1", "one", { metadata, expiration });
  await kv("put", "m/2", '"two"', { expirationTtl: 60 });
  expect(await kv("getWithMetadata", "m/1")).toEqual({ value: "one", metadata, cacheStatus: null });
  expect(await kv("get", ["m/1", "m/2", "m/3"])).toEqual({
    map: { "m/1": "one", "m/2": '"two"', "m/3": null },
  });
  expect(await kv("get", ["m/2"], "json")).toEqual({ map: { "m/2": "two" } });
  expect(await kv("getWithMetadata", ["m/1", "m/3"])).toEqual({
    map: {
      "m/1": { value: "one", metadata, cacheStatus: null },
      "m/3": { value: null, metadata: null, cacheStatus: null },
    },
  });
  const path = `/accounts/${server.ready.account_id}/storage/kv/namespaces/${namespaceId}`;
  const { result } = (await server.call("GET", `${path}/keys?prefix=m/1`)).body;
  expect(result).toEqual([{ name: "m/1", metadata, expiration }]);
});

it("lists keys in their order, page by page", async () => {
  for (const key of ["p/b", "p/a", "p/é", "p/B"]) await kv("put", key, "");
  const all = {
    keys: ["p/B", "p/a", "p/b", "p/é"].map((name) => ({ name })),
    list_complete: true,
    cacheStatus: null,
  };
  expect(await kv("list", { prefix: "p/" })).toEqual(all);
  const first = (await kv("list", { prefix: "p/", limit: 3 })) as {
    keys: { name: string }[];
    cursor: string;
  };
  expect(first).toMatchObject({ keys: all.keys.slice(0, 3), list_complete: false });
  expect(await kv("list", { prefix: "p/", limit: 3, cursor: first.cursor })).toMatchObject({
    keys: all.keys.slice(3),
    list_complete: true,
  });
});

it.each([
  [["get", ""], "Key name cannot be empty."],
  [["get", ".."], '".." is not allowed as a key name.'],
  [
    ["get", "x".repeat(513)],
    "KV GET failed: 414 UTF-8 encoded length of 513 exceeds key length limit of 512.",
  ],
  [["get", "a", "xml"], 'Unknown response type "xml"'],
  [["get", "a", { cacheTtl: 1 }], "KV GET failed: 400 Invalid cache_ttl of 1."],
  [["get", ["a"], "stream"], 'Unknown response type "stream"'],
  [["get", Array.from({ length: 101 }, String)], "KV GET failed: 400 You can request a maximum of 100 keys"],
  [["put", "a", { an: "object" }], "KV put() accepts only strings"],
  [["put", "a", "b", { expirationTtl: 10 }], "KV PUT failed: 400 Expected an expiration_ttl"],
  [["put", "a", "b", { expiration: 1 }], "KV PUT failed: 400 Expected an expiration"],
  [["put", "a", "b", { metadata: "x".repeat(1100) }], "KV PUT failed: 413 Metadata length of 1102 exceeds"],
  [["list", { limit: 1001 }], "KV GET failed: 400 Invalid key_count_limit of 1001."],
  [["list", { cursor: "no-cursor" }], "KV GET failed: 400 Expected a cursor"],
])("refuses %j", async (call, message) => {
  await expect(kv(...call)).rejects.toThrow(message);
});

it("refuses writes once the namespace is gone", async () => {
  const path = `/accounts/${server.ready.account_id}/storage/kv/namespaces/${namespaceId}`;
  await server.call("DELETE", path);
  await expect(kv("put", "a", "b")).rejects.toThrow("KV PUT failed: 404 namespace not found");
  expect(await kv("get", "json")).toBeNull();
});
