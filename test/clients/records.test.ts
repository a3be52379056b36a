import type Cloudflare from "cloudflare";
import { afterAll, expect, it } from "vitest";
import { startTestServer } from "../helpers/server.ts";

const server = await startTestServer();
afterAll(() => server.close(1000));
const { client } = server;

it("creates, gets, lists, replaces, edits and deletes", async () => {
  const zone_id = await server.newZone("records.example");
  const created = await client.dns.records.create({
    zone_id,
    type: "A",
    name: "www",
    content: "192.0.2.1",
    ttl: 300,
    proxied: false,
  });
  expect(created).toMatchObject({
    name: "www.records.example",
    proxiable: true,
    proxied: false,
    ttl: 300,
    comment: null,
    tags: [],
    meta: {},
  });
  const id = created.id;
  expect(await client.dns.records.get(id, { zone_id })).toEqual(created);
  const edited = await client.dns.records.edit(id, {
    zone_id,
    comment: "web",
    type: "A",
    name: "www",
    content: "192.0.2.2",
    ttl: 300,
  });
  expect(edited).toMatchObject({ content: "192.0.2.2", comment: "web" });
  const replaced = await client.dns.records.update(id, {
    zone_id,
    type: "AAAA",
    name: "www",
    content: "2001:DB8:0::1",
    ttl: 1,
    proxied: true,
  });
  expect(replaced).toMatchObject({
    type: "AAAA",
    content: "2001:db8::1",
    proxied: true,
    ttl: 1,
    comment: null,
  });
  expect(await client.dns.records.delete(id, { zone_id })).toEqual({ id });
  await expect(client.dns.records.get(id, { zone_id })).rejects.toMatchObject({
    status: 404,
    errors: [{ code: 81044 }],
  });
});

it("iterates over 250 records", async () => {
  const zone_id = await server.newZone("many.example");
  const posts = Array.from({ length: 250 }, (_, i) => ({
    type: "TXT" as const,
    name: `r${i}`,
    content: `"value ${i}"`,
    ttl: 60,
  }));
  await client.dns.records.batch({ zone_id, posts });
  const names = (await Array.fromAsync(client.dns.records.list({ zone_id, per_page: 40 }))).map(
    (record) => record.name,
  );
  expect(new Set(names).size).toBe(250);
});

it("filters records", async () => {
  const zone_id = await server.newZone("filter.example");
  await client.dns.records.batch({
    zone_id,
    posts: [
      { type: "A", name: "a", content: "192.0.2.1", ttl: 60, comment: "first one", tags: ["team:web"] },
      { type: "A", name: "b", content: "192.0.2.2", ttl: 60, proxied: true },
      { type: "TXT", name: "a_b", content: '"100% text"', ttl: 60, tags: ["team:mail", "old"] },
    ],
  });
  const names = async (query: object): Promise<string[]> =>
    (await Array.fromAsync(client.dns.records.list({ zone_id, ...query }))).map(
      (record) => record.name.split(".")[0]!,
    );
  expect(await names({ type: "A" })).toEqual(["a", "b"]);
  expect(await names({ proxied: true })).toEqual(["b"]);
  expect(await names({ name: { startswith: "a_" } })).toEqual(["a_b"]);
  expect(await names({ content: { contains: "0%" } })).toEqual(["a_b"]);
  expect(await names({ comment: { present: "true" } })).toEqual(["a"]);
  expect(await names({ comment: { absent: "true" } })).toEqual(["a_b", "b"]);
  expect(await names({ tag: { exact: "team:web" } })).toEqual(["a"]);
  expect(await names({ tag: { present: "team" } })).toEqual(["a", "a_b"]);
  expect(await names({ tag: { absent: "team" } })).toEqual(["b"]);
  expect(await names({ search: "FIRST" })).toEqual(["a"]);
  expect(await names({ match: "any", type: "TXT", proxied: true, order: "name", direction: "desc" })).toEqual(
    ["b", "a_b"],
  );
});

it("rejects conflicting records with the public codes", async () => {
  const zone_id = await server.newZone("conflict.example");
  const add = (record: object): Promise<unknown> =>
    client.dns.records
      .create({ zone_id, ttl: 60, ...record } as Cloudflare.DNS.RecordCreateParams)
      .catch((error: unknown) => error);
  await add({ type: "A", name: "www", content: "192.0.2.1" });
  expect(await add({ type: "CNAME", name: "www", content: "other.example" })).toMatchObject({
    errors: [{ code: 81053 }],
  });
  expect(await add({ type: "A", name: "www", content: "192.0.2.1" })).toMatchObject({
    errors: [{ code: 81058 }, { code: 81057 }],
  });
  expect(await add({ type: "A", name: "www", content: "192.0.2.2" })).toMatchObject({ type: "A" });
  await add({ type: "CNAME", name: "alias", content: "other.example" });
  expect(await add({ type: "A", name: "alias", content: "192.0.2.1" })).toMatchObject({
    errors: [{ code: 81054 }],
  });
  expect(await add({ type: "A", name: "x", content: "10.0.1" })).toMatchObject({
    status: 400,
    errors: [
      { code: 9005, message: 'Content for A record must be a valid IPv4 address but received "10.0.1"' },
    ],
  });
  expect(await add({ type: "TXT", name: "x", content: "text", proxied: true })).toMatchObject({
    errors: [{ code: 9041 }],
  });
});

it("applies a batch in order, or not at all", async () => {
  const zone_id = await server.newZone("batch.example");
  const { posts } = await client.dns.records.batch({
    zone_id,
    posts: [{ type: "A", name: "a", content: "192.0.2.1", ttl: 60 }],
  });
  const id = posts![0]!.id;
  const moved = await client.dns.records.batch({
    zone_id,
    deletes: [{ id }],
    posts: [{ type: "CNAME", name: "a", content: "b.example", ttl: 60 }],
  });
  expect(moved.deletes).toHaveLength(1);
  const serial = (): number => server.services.zones.find(zone_id)!.serial;
  const before = [await Array.fromAsync(client.dns.records.list({ zone_id })), serial()];
  const failing = client.dns.records.batch({
    zone_id,
    posts: [
      { type: "A", name: "c", content: "192.0.2.1", ttl: 60 },
      { type: "A", name: "d", content: "192.0.2.1", ttl: 60 },
      { type: "A", name: "e", content: "none", ttl: 60 },
    ],
  });
  await expect(failing).rejects.toMatchObject({ status: 400 });
  expect([await Array.fromAsync(client.dns.records.list({ zone_id })), serial()]).toEqual(before);
});

it("exports and imports zone files", async () => {
  const zone_id = await server.newZone("file.example");
  const file =
    "$TTL 300\nwww IN A 192.0.2.1\n    IN AAAA 2001:db8::1\n@ 60 IN MX 10 mail\n$GENERATE 1-3 h$ A 192.0.2.$\n";
  const imported = await client.dns.records.import({
    zone_id,
    file,
    proxied: "false",
  });
  expect(imported).toMatchObject({ recs_added: 6, total_records_parsed: 6 });
  const exported = await client.dns.records.export({ zone_id });
  expect(exported).toContain("www.file.example.\t300\tIN\tA\t192.0.2.1");
  const copy = await server.newZone("copy.example");
  await client.dns.records.import({
    zone_id: copy,
    file: exported.replaceAll("file.example", "copy.example"),
  });
  const shape = async (id: string): Promise<string[]> =>
    (await Array.fromAsync(client.dns.records.list({ zone_id: id })))
      .map(
        ({ type, content, ttl, proxied }) =>
          `${type} ${(content ?? "").replace(/copy|file/, "")} ${ttl} ${proxied}`,
      )
      .sort();
  expect(await shape(copy)).toEqual(await shape(zone_id));
  const broken = client.dns.records.import({
    zone_id,
    file: "new A 192.0.2.9\nbad A nonsense\n",
  });
  await expect(broken).rejects.toMatchObject({
    status: 400,
    errors: [{ code: 81059, message: expect.stringContaining("line 2") as string }],
  });
  expect(await Array.fromAsync(client.dns.records.list({ zone_id, name: { contains: "new" } }))).toEqual([]);
});
