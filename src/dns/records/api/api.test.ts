import type Cloudflare from "cloudflare";
import { describe, expect, it } from "vitest";
import type { ApiResponse } from "../../../../test/helpers/server.ts";
import {
  client,
  createZone,
  messages,
  nameOf,
  server,
  useServer,
} from "../../../../test/helpers/dns-records.ts";

useServer();

const call = (zone_id: string, method: string, path = "", body?: unknown): Promise<ApiResponse> =>
  server.call(method, `/zones/${zone_id}/dns_records${path}`, body);

describe("a record in the API", () => {
  it("has the same fields, computed ones included, in every response", async () => {
    const zone_id = await createZone();
    const created = await client.dns.records.create({
      zone_id,
      type: "A",
      name: "www",
      content: "192.0.2.1",
      ttl: 1,
    });
    expect(created).toEqual({
      id: expect.stringMatching(/^[0-9a-f]{32}$/) as string,
      zone_id,
      zone_name: nameOf(zone_id),
      name: `www.${nameOf(zone_id)}`,
      type: "A",
      content: "192.0.2.1",
      proxiable: true,
      proxied: false,
      ttl: 1,
      settings: {},
      meta: {},
      comment: null,
      tags: [],
      created_on: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/) as string,
      modified_on: created.created_on,
    });
    const { id } = created;
    expect(await client.dns.records.get(id, { zone_id })).toEqual(created);
    expect(await Array.fromAsync(client.dns.records.list({ zone_id }))).toEqual([created]);
    expect((await call(zone_id, "PUT", `/${id}`, created)).body.result).toEqual(created);
    expect((await call(zone_id, "PATCH", `/${id}`, created)).body.result).toEqual(created);
    expect((await call(zone_id, "POST", "/batch", { puts: [created] })).body.result).toEqual({
      deletes: null,
      patches: null,
      puts: [created],
      posts: null,
    });
  });

  it("has data if its type has fields, and the priority in its place", async () => {
    const zone_id = await createZone();
    const make = async (record: object) =>
      client.dns.records.create({ zone_id, ttl: 60, ...record } as Cloudflare.DNS.RecordCreateParams);
    expect(
      await make({
        type: "SRV",
        name: "_sip._tcp",
        data: { priority: 1, weight: 2, port: 3, target: "Sip.example." },
      }),
    ).toMatchObject({
      content: "2 3 sip.example",
      priority: 1,
      data: { priority: 1, weight: 2, port: 3, target: "sip.example" },
    });
    const mx = await make({ type: "MX", name: "@", content: "mail.example", priority: 10 });
    expect(mx).toMatchObject({ content: "mail.example", priority: 10 });
    expect(mx).not.toHaveProperty("data");
    expect(
      await make({ type: "URI", name: "u", priority: 5, data: { weight: 1, target: "https://a.example/" } }),
    ).toMatchObject({
      content: '1 "https://a.example/"',
      priority: 5,
      data: { weight: 1, target: "https://a.example/" },
    });
    const https = await make({
      type: "HTTPS",
      name: "h",
      data: { priority: 1, target: ".", value: 'alpn="h3"' },
    });
    expect(https).toMatchObject({
      content: '1 . alpn="h3"',
      data: { priority: 1, target: ".", value: 'alpn="h3"' },
    });
    expect(https).not.toHaveProperty("priority");
    expect(await make({ type: "CAA", name: "c", content: '0 issue "ca.example"' })).toMatchObject({
      data: { flags: 0, tag: "issue", value: "ca.example" },
    });
  });

  it("has the times of comment and tags while there are some", async () => {
    const zone_id = await createZone();
    const record = { zone_id, type: "A", name: "www", content: "192.0.2.1", ttl: 60 } as const;
    const created = await client.dns.records.create({ ...record, comment: "x", tags: ["team:web"] });
    expect(created.comment_modified_on).toBe(created.created_on);
    expect(created.tags_modified_on).toBe(created.created_on);
    const cleared = (await call(zone_id, "PATCH", `/${created.id}`, { comment: null, tags: [] })).body
      .result as object;
    expect(cleared).toMatchObject({ comment: null, tags: [] });
    expect(cleared).not.toHaveProperty("comment_modified_on");
    expect(cleared).not.toHaveProperty("tags_modified_on");
  });
});

describe("the API rejects", () => {
  it.each<[string, object, number, string]>([
    ["a wrong address", { content: "10.0.1" }, 9005, "/body/content"],
    ["no content", { content: undefined }, 9005, "/body/content"],
    ["a wrong name", { name: "a..b" }, 9000, "/body/name"],
    ["a wrong type", { type: "BOGUS" }, 9004, "/body/type"],
    ["a wrong TTL", { ttl: 5 }, 9021, "/body/ttl"],
    ["an MX without priority", { type: "MX", content: "mail.example" }, 9100, "/body/priority"],
    [
      "an SRV without weight",
      { type: "SRV", name: "_a._b", data: { priority: 1, port: 1, target: "." } },
      9101,
      "/body/data/weight",
    ],
    ["a proxied TXT", { type: "TXT", proxied: true }, 9041, "/body/proxied"],
    [
      "data fields that the type does not have",
      { data: { address: "192.0.2.1" } },
      9101,
      "/body/data/address",
    ],
    ["private routing", { private_routing: true }, 9207, "/body/private_routing"],
    ["an unknown field", { contents: "192.0.2.1" }, 9207, "/body/contents"],
    ["an unknown setting", { settings: { ipv5_only: true } }, 9207, "/body/settings/ipv5_only"],
    ["a comment of two lines", { comment: "a\nb" }, 9300, "/body/comment"],
    ["an invalid tag", { tags: ["a b"] }, 9301, "/body/tags"],
    ["text that is too long", { type: "TXT", content: "x".repeat(2049) }, 9005, "/body/content"],
  ])("%s", async (_, record, code, pointer) => {
    const zone_id = await createZone();
    const answer = await call(zone_id, "POST", "", {
      type: "A",
      name: "www",
      content: "192.0.2.1",
      ttl: 60,
      ...record,
    });
    expect(answer.status).toBe(400);
    expect(answer.body.errors).toMatchObject([{ code, source: { pointer } }]);
    expect(await Array.fromAsync(client.dns.records.list({ zone_id }))).toEqual([]);
  });

  it("an unknown filter, because the unfiltered list would mislead", async () => {
    const zone_id = await createZone();
    const answer = await call(zone_id, "GET", "?nmae=www");
    expect([answer.status, answer.body.errors[0]!.message]).toEqual([
      400,
      expect.stringContaining('did you mean "name"?'),
    ]);
    expect((await call(zone_id, "GET", "?name.contains=%00")).status).toBe(400);
    expect((await call(zone_id, "GET", "?type=BOGUS")).status).toBe(400);
    expect((await call(zone_id, "GET", "?per_page=5000000")).status).toBe(200);
    expect((await call(zone_id, "GET", "?per_page=5000001")).status).toBe(400);
  });

  it("the id of another record in the body", async () => {
    const zone_id = await createZone();
    const { id } = await client.dns.records.create({
      zone_id,
      type: "A",
      name: "a",
      content: "192.0.2.1",
      ttl: 60,
    });
    const answer = await call(zone_id, "PATCH", `/${id}`, { id: "f".repeat(32), ttl: 120 });
    expect(answer.body.errors).toMatchObject([{ code: 9207, source: { pointer: "/body/id" } }]);
    expect((await call(zone_id, "PATCH", `/${"f".repeat(32)}`, { ttl: 120 })).body.errors).toMatchObject([
      { code: 81044 },
    ]);
  });
});

describe("the API accepts with a message", () => {
  it("a name that looks like another domain's", async () => {
    const zone_id = await createZone();
    const body = { type: "A", name: "www.example.org", content: "192.0.2.1" };
    const answer = await call(zone_id, "POST", "", body);
    expect(answer.body.result).toMatchObject({ name: `www.example.org.${nameOf(zone_id)}` });
    expect(messages(answer)).toEqual([expect.stringContaining('"www.example.org" is not in the zone')]);
    expect((await call(zone_id, "POST", "", { ...body, name: "www.example.org." })).status).toBe(400);
  });

  it("a priority without a meaning, and nulls", async () => {
    const zone_id = await createZone();
    const body = {
      type: "A",
      name: "a",
      content: "192.0.2.1",
      priority: 10,
      data: null,
      settings: null,
      tags: null,
      ttl: null,
    };
    const answer = await call(zone_id, "POST", "", body);
    expect(answer.body.result).not.toHaveProperty("priority");
    expect(messages(answer)).toEqual([expect.stringContaining("because A records have none")]);
  });
});

describe("the API accepts from older clients", () => {
  const older = {
    type: "SRV",
    ttl: 60,
    data: {
      service: "_sip",
      proto: "_tcp",
      name: "a.ORIGIN",
      priority: 1,
      weight: 2,
      port: 3,
      target: "t.example",
    },
  };
  const zoneAndRecord = async () => {
    const zone_id = await createZone();
    const { name: origin } = await client.zones.get({ zone_id });
    const data = { ...older.data, name: `a.${origin}` };
    const made = await call(zone_id, "POST", "", { ...older, data });
    return { zone_id, origin, data, made };
  };

  it("SRV with the parts of its name in data, which stay there until it is renamed", async () => {
    const { zone_id, origin, data, made } = await zoneAndRecord();
    const name = `_sip._tcp.a.${origin}`;
    expect(made.body.result).toMatchObject({ name, data, content: "2 3 t.example" });
    expect(messages(made)).toEqual([expect.stringContaining(`gave the name "${name}"`)]);
    const { id } = made.body.result as { id: string };
    const patched = await call(zone_id, "PATCH", `/${id}`, { ttl: 120 });
    expect(patched.body.result).toMatchObject({ name, data });
    const renamed = await call(zone_id, "PATCH", `/${id}`, { name: "_sip._udp" });
    const { service: _s, proto: _p, name: _n, ...rest } = data;
    expect(renamed.body.result).toMatchObject({ name: `_sip._udp.${origin}` });
    expect((renamed.body.result as { data: object }).data).toEqual(rest);
    const back = await call(zone_id, "PUT", `/${id}`, { ...older, name: "ignored", data });
    expect(back.body.result).toMatchObject({ name, data });
  });

  it("rejects such parts in other types, incomplete parts, and a record without a name", async () => {
    const zone_id = await createZone();
    const refused = async (body: object) => (await call(zone_id, "POST", "", body)).body.errors[0];
    const { proto: _proto, ...partly } = older.data;
    expect(await refused({ ...older, name: "_a._b", data: partly })).toMatchObject({
      code: 9101,
      source: { pointer: "/body/data/service" },
    });
    expect(await refused({ ...older, data: partly })).toMatchObject({
      code: 9207,
      message: "Expected a string for name, which is required",
      source: { pointer: "/body/name" },
    });
    expect(await refused({ type: "A", content: "192.0.2.1", data: older.data })).toMatchObject({
      code: 9101,
    });
  });

  it("an empty name, which is the apex, and computed fields", async () => {
    const zone_id = await createZone();
    const { name: origin } = await client.zones.get({ zone_id });
    const made = await call(zone_id, "POST", "", { type: "A", name: "", content: "192.0.2.1", extra: {} });
    expect(made.body.result).toMatchObject({ name: origin });
    expect(messages(made)).toEqual([expect.stringContaining("extra was ignored")]);
    const { id } = made.body.result as { id: string };
    const body = { type: "A", name: null, content: "192.0.2.2" };
    expect((await call(zone_id, "PUT", `/${id}`, body)).body.result).toMatchObject({ name: origin });
    expect((await call(zone_id, "POST", "", body)).body.errors).toMatchObject([{ code: 9207 }]);
    const listed = await call(zone_id, "GET", "?include_shadow_metadata=true");
    expect(listed.body.result).toHaveLength(1);
    expect(messages(listed)).toEqual([expect.stringContaining("include_shadow_metadata was ignored")]);
  });
});

describe("conflicts have the public codes", () => {
  it("at one name, one record at a time and in a batch", async () => {
    const zone_id = await createZone();
    const www = { type: "A", name: "www", content: "192.0.2.1" };
    const code = async (record: object): Promise<number | undefined> =>
      (await call(zone_id, "POST", "", record)).body.errors[0]?.code;
    expect(await code(www)).toBeUndefined();
    expect(await code({ type: "CNAME", name: "www", content: "t.example" })).toBe(81053);
    expect(await code(www)).toBe(81058);
    expect(await code({ ...www, content: "192.0.2.2" })).toBeUndefined();
    expect(await code({ type: "CNAME", name: "alias", content: "t.example" })).toBeUndefined();
    expect(await code({ ...www, name: "alias" })).toBe(81054);
    const batch = {
      posts: [
        { ...www, name: "new" },
        { ...www, name: "alias" },
      ],
    };
    expect((await call(zone_id, "POST", "/batch", batch)).body.errors).toMatchObject([
      { code: 81054, source: { pointer: "/body/posts/1/name" } },
    ]);
    for (let i = 0; i < 8; i++)
      expect(await code({ type: "TXT", name: "t", content: `${i}${"x".repeat(999)}` })).toBeUndefined();
    expect(await code({ type: "TXT", name: "t", content: `9${"x".repeat(999)}` })).toBe(9212);
  });
});

describe("many records", () => {
  it("are iterated over by the client, page by page", async () => {
    const zone_id = await createZone();
    const posts = Array.from({ length: 260 }, (_, i) => ({
      type: "A" as const,
      name: `h${i}`,
      content: "192.0.2.1",
      ttl: 60,
    }));
    const made = await client.dns.records.batch({ zone_id, posts });
    expect(made.posts!.map(({ name }) => name)).toEqual(
      posts.map(({ name }) => `${name}.${nameOf(zone_id)}`),
    );
    const all = await Array.fromAsync(client.dns.records.list({ zone_id }));
    expect(new Set(all.map(({ id }) => id)).size).toBe(260);
    const page = await call(zone_id, "GET", "?page=3");
    expect(page.body.result_info).toEqual({
      page: 3,
      per_page: 100,
      count: 60,
      total_count: 260,
      total_pages: 3,
    });
    expect((await call(zone_id, "GET", "?page=4")).body).toMatchObject({ success: true, result: [] });
  });

  it("fit into a batch up to the plan's limit", async () => {
    const zone_id = await createZone();
    await server.call("PATCH", `/zones/${zone_id}`, { plan: { id: "free" } });
    const posts = (count: number) =>
      Array.from({ length: count }, (_, i) => ({ type: "A", name: `h${i}`, content: "192.0.2.1" }));
    expect((await call(zone_id, "POST", "/batch", { posts: posts(201) })).body.errors).toMatchObject([
      { code: 9208 },
    ]);
    expect((await call(zone_id, "POST", "/batch", { posts: posts(200) })).status).toBe(200);
    expect(await client.dns.usage.zone.get({ zone_id })).toEqual({ record_quota: 1000, record_usage: 200 });
    await server.call("PATCH", `/zones/${zone_id}`, { plan: { id: "enterprise" } });
    expect((await call(zone_id, "POST", "/batch", { posts: posts(3501) })).body.errors).toMatchObject([
      { code: 9208 },
    ]);
  });
});

describe("scans find nothing and explain it", () => {
  it("through every operation", async () => {
    const zone_id = await createZone();
    expect(await client.dns.records.scan({ zone_id, body: {} } as never)).toEqual({
      recs_added: 0,
      total_records_parsed: 0,
    });
    const triggered = await client.dns.records.scanTrigger({ zone_id });
    expect(triggered).toMatchObject({ success: true, errors: [], messages: [{ code: 9903 }] });
    expect(await Array.fromAsync(client.dns.records.scanList({ zone_id }))).toEqual([]);
    expect(await client.dns.records.scanReview({ zone_id })).toEqual({ accepts: [], rejects: [] });
    const rejects = [{ id: "f".repeat(32) }];
    expect((await call(zone_id, "POST", "/scan/review", { rejects })).body.errors).toMatchObject([
      { code: 9207, source: { pointer: "/body/rejects" } },
    ]);
  });
});

it("the account's usage counts all of its zones", async () => {
  const account_id = server.ready.account_id;
  const before = await client.dns.usage.account.get({ account_id });
  expect(before.record_quota).toBeNull();
  for (let i = 0; i < 2; i++) {
    await client.dns.records.create({
      zone_id: await createZone(),
      type: "A",
      name: "a",
      content: "192.0.2.1",
      ttl: 60,
    });
  }
  expect((await client.dns.usage.account.get({ account_id })).record_usage).toBe(before.record_usage + 2);
});
