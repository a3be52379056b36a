import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import Cloudflare from "cloudflare";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ownerKey, ownerToken, startTestServer, type TestServer } from "../helpers/server.ts";
import { visit } from "../helpers/visit.ts";

/** The official client, unchanged, does everything that this platform serves. */
let server: TestServer;
let client: Cloudflare;
let accountId: string;
beforeAll(async () => {
  server = await startTestServer();
  ({ client } = server);
  accountId = server.ready.account_id;
});
afterAll(() => server.close(1000));

const createZone = async (name: string): Promise<string> =>
  (await client.zones.create({ account: { id: accountId }, name, type: "full" })).id;

async function collect<T>(list: AsyncIterable<T>): Promise<T[]> {
  const items: T[] = [];
  for await (const item of list) items.push(item);
  return items;
}

describe("zones", () => {
  it("creates, lists, gets, edits, checks and deletes", async () => {
    const created = await client.zones.create({
      account: { id: accountId },
      name: "Shop.Example",
      type: "full",
    });
    expect(created).toMatchObject({ name: "shop.example", status: "pending", paused: false, type: "full" });
    expect(created.name_servers).toHaveLength(2);
    const zone_id = created.id;
    await client.zones.activationCheck.trigger({ zone_id });
    const zone = await client.zones.get({ zone_id });
    expect(zone.status).toBe("active");
    expect(zone.activated_on).toMatch(/^\d{4}-/);
    expect((await client.zones.edit({ zone_id, paused: true })).paused).toBe(true);
    expect((await client.zones.edit({ zone_id, paused: false })).paused).toBe(false);
    expect(
      await collect(
        client.zones.list({ name: "shop.example", status: "active", account: { id: accountId } }),
      ),
    ).toHaveLength(1);
    expect(await collect(client.zones.list({ name: "contains:nothing" }))).toEqual([]);
    expect((await client.zones.delete({ zone_id }))?.id).toBe(zone_id);
    await expect(client.zones.get({ zone_id })).rejects.toMatchObject({ status: 404 });
  });

  it("refuses what is no zone, naming the field", async () => {
    await createZone("taken.example");
    for (const [name, code] of [
      ["taken.example", 1061],
      ["com", 1002],
      ["127.0.0.1", 1002],
      ["co.uk", 1002],
      ["a b.example", 1002],
    ] as const) {
      const refusal = await client.zones
        .create({ account: { id: accountId }, name })
        .catch((error: unknown) => error);
      expect(refusal).toMatchObject({ status: 400, errors: [{ code, source: { pointer: "/body/name" } }] });
    }
  });

  it("pages through every zone", async () => {
    for (let i = 0; i < 45; i++) await createZone(`page-${i}.example`);
    const names = (await collect(client.zones.list({ per_page: 20 }))).map((zone) => zone.name);
    expect(names.filter((name) => name.startsWith("page-"))).toHaveLength(45);
    expect(new Set(names).size).toBe(names.length);
  });
});

describe("DNS records", () => {
  it("creates, gets, lists, replaces, edits and deletes", async () => {
    const zone_id = await createZone("records.example");
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
    const zone_id = await createZone("many.example");
    const posts = Array.from({ length: 250 }, (_, i) => ({
      type: "TXT" as const,
      name: `r${i}`,
      content: `"value ${i}"`,
      ttl: 60,
    }));
    await client.dns.records.batch({ zone_id, posts });
    const names = (await collect(client.dns.records.list({ zone_id, per_page: 40 }))).map(
      (record) => record.name,
    );
    expect(new Set(names).size).toBe(250);
  });

  it("filters", async () => {
    const zone_id = await createZone("filter.example");
    await client.dns.records.batch({
      zone_id,
      posts: [
        { type: "A", name: "a", content: "192.0.2.1", ttl: 60, comment: "first one", tags: ["team:web"] },
        { type: "A", name: "b", content: "192.0.2.2", ttl: 60, proxied: true },
        { type: "TXT", name: "a_b", content: '"100% text"', ttl: 60, tags: ["team:mail", "old"] },
      ],
    });
    const names = async (query: object): Promise<string[]> =>
      (await collect(client.dns.records.list({ zone_id, ...query }))).map(
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
    expect(
      await names({ match: "any", type: "TXT", proxied: true, order: "name", direction: "desc" }),
    ).toEqual(["b", "a_b"]);
  });

  it("keeps what cannot stand together apart, with the public codes", async () => {
    const zone_id = await createZone("conflict.example");
    const add = (record: object): Promise<unknown> =>
      client.dns.records
        .create({ zone_id, ttl: 60, ...record } as Cloudflare.DNS.RecordCreateParams)
        .catch((error: unknown) => error);
    await add({ type: "A", name: "www", content: "192.0.2.1" });
    expect(await add({ type: "CNAME", name: "www", content: "other.example" })).toMatchObject({
      errors: [{ code: 81053 }],
    });
    expect(await add({ type: "A", name: "www", content: "192.0.2.1" })).toMatchObject({
      errors: [{ code: 81058 }],
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

  it("carries out a batch in order, or not at all", async () => {
    const zone_id = await createZone("batch.example");
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
    const before = [await collect(client.dns.records.list({ zone_id })), serial()];
    const failing = client.dns.records.batch({
      zone_id,
      posts: [
        { type: "A", name: "c", content: "192.0.2.1", ttl: 60 },
        { type: "A", name: "d", content: "192.0.2.1", ttl: 60 },
        { type: "A", name: "e", content: "none", ttl: 60 },
      ],
    });
    await expect(failing).rejects.toMatchObject({ status: 400 });
    expect([await collect(client.dns.records.list({ zone_id })), serial()]).toEqual(before);
  });

  it("exports and imports zone files", async () => {
    const zone_id = await createZone("file.example");
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
    const copy = await createZone("copy.example");
    await client.dns.records.import({
      zone_id: copy,
      file: exported.replaceAll("file.example", "copy.example"),
    });
    const shape = async (id: string): Promise<string[]> =>
      (await collect(client.dns.records.list({ zone_id: id })))
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
    expect(await collect(client.dns.records.list({ zone_id, name: { contains: "new" } }))).toEqual([]);
  });
});

describe("smart routing", () => {
  it("is read and changed; the same value again changes nothing", async () => {
    const zone_id = await createZone("routing.example");
    const before = await client.argo.smartRouting.get({ zone_id });
    expect(before).toMatchObject({ id: "smart_routing", value: "off", editable: true });
    const on = await client.argo.smartRouting.edit({ zone_id, value: "on" });
    expect(on.value).toBe("on");
    expect(await client.argo.smartRouting.edit({ zone_id, value: "on" })).toEqual(on);
    const { body } = await server.call("GET", `/zones/${zone_id}/edge/smart_routing`);
    expect(body.result).toEqual(on);
    expect(
      (await server.call("PATCH", `/zones/${zone_id}/edge/smart_routing`, { value: "maybe" })).status,
    ).toBe(400);
  });

  it("is not editable where the plan lacks it, or the token may only read", async () => {
    const zone_id = await createZone("free.example");
    await server.call("PATCH", `/zones/${zone_id}`, { plan: { id: "free" } });
    expect((await client.argo.smartRouting.get({ zone_id })).editable).toBe(false);
    await expect(client.argo.smartRouting.edit({ zone_id, value: "on" })).rejects.toMatchObject({
      status: 403,
      errors: [{ code: 1015 }],
    });
    const paid = await createZone("paid.example");
    const reader = await tokenFor("Smart Routing Read", { [`com.cloudflare.api.account.zone.${paid}`]: "*" });
    expect((await reader.argo.smartRouting.get({ zone_id: paid })).editable).toBe(false);
    await expect(reader.argo.smartRouting.edit({ zone_id: paid, value: "on" })).rejects.toMatchObject({
      status: 403,
    });
  });
});

async function tokenFor(
  group: string,
  resources: Record<string, string>,
  more: object = {},
): Promise<Cloudflare> {
  const { body } = await server.call("POST", "/user/tokens", {
    name: group,
    policies: [{ effect: "allow", resources, permission_groups: [{ name: group }] }],
    ...more,
  });
  return new Cloudflare({
    baseURL: server.ready.api,
    apiToken: (body.result as { value: string }).value,
    maxRetries: 0,
  });
}

describe("identity", () => {
  it("verifies, and shows the user, accounts and memberships", async () => {
    expect(await client.user.tokens.verify()).toMatchObject({ status: "active" });
    expect(await client.user.get()).toMatchObject({ email: "owner@selvedge.localhost" });
    expect((await collect(client.accounts.list())).map(({ id }) => id)).toContain(accountId);
    expect((await collect(client.memberships.list())).map(({ account }) => account?.id)).toContain(accountId);
    expect(await client.accounts.get({ account_id: accountId })).toMatchObject({ id: accountId });
  });

  it("makes, changes, rolls and deletes tokens, and shows their value once", async () => {
    const groups = await collect(client.user.tokens.permissionGroups.list());
    const dnsWrite = groups.find((group) => group.name === "DNS Write")!;
    const zone_id = await createZone("scoped.example");
    const token = await client.user.tokens.create({
      name: "dns",
      policies: [
        {
          effect: "allow",
          resources: { [`com.cloudflare.api.account.zone.${zone_id}`]: "*" },
          permission_groups: [{ id: dnsWrite.id! }],
        },
      ],
    });
    const value = token.value as string;
    const scoped = new Cloudflare({ baseURL: server.ready.api, apiToken: value, maxRetries: 0 });
    await scoped.dns.records.create({ zone_id, type: "A", name: "a", content: "192.0.2.1", ttl: 60 });
    await expect(scoped.zones.get({ zone_id })).rejects.toMatchObject({
      status: 403,
      errors: [{ code: 9109 }],
    });
    expect(await client.user.tokens.get(token.id!)).not.toHaveProperty("value");
    const rolled = await client.user.tokens.value.update(token.id!, { body: {} });
    await expect(scoped.dns.records.list({ zone_id })).rejects.toMatchObject({ status: 401 });
    const again = new Cloudflare({ baseURL: server.ready.api, apiToken: rolled, maxRetries: 0 });
    expect(await collect(again.dns.records.list({ zone_id }))).toHaveLength(1);
    await client.user.tokens.update(token.id!, {
      name: "dns",
      status: "disabled",
      policies: token.policies as never,
    });
    await expect(again.dns.records.list({ zone_id })).rejects.toMatchObject({ status: 401 });
    expect(await client.user.tokens.delete(token.id!)).toEqual({ id: token.id });
  });

  it("holds tokens to their time, address and owner", async () => {
    const zone_id = await createZone("conditions.example");
    const resources = { [`com.cloudflare.api.account.zone.${zone_id}`]: "*" };
    const past = "2020-01-01T00:00:00Z";
    const future = "2099-01-01T00:00:00Z";
    const list = async (more: object): Promise<unknown> => {
      const scoped = await tokenFor("DNS Read", resources, more);
      return collect(scoped.dns.records.list({ zone_id })).catch((error: { status: number }) => error.status);
    };
    expect(await list({ not_before: past, expires_on: future })).toEqual([]);
    expect(await list({ expires_on: past })).toBe(401);
    expect(await list({ not_before: future })).toBe(401);
    expect(await list({ condition: { request_ip: { in: ["127.0.0.0/8", "::1"] } } })).toEqual([]);
    expect(await list({ condition: { request_ip: { in: ["192.0.2.0/24"] } } })).toBe(403);
    expect(await list({ condition: { request_ip: { not_in: ["127.0.0.1"] } } })).toBe(403);
  });

  it("does not let a token make a stronger one", async () => {
    const userId = (await client.user.get()).id;
    const maker = await tokenFor("API Tokens Write", { [`com.cloudflare.api.user.${userId}`]: "*" });
    const stronger = maker.user.tokens.create({
      name: "more",
      policies: [
        {
          effect: "allow",
          resources: { "com.cloudflare.api.account.zone.*": "*" },
          permission_groups: [{ id: "4755a26eedb94da69e1066d98aa820be" }],
        },
      ],
    });
    await expect(stronger).rejects.toMatchObject({ status: 403 });
  });

  it("takes the legacy key, and account-owned tokens", async () => {
    const legacy = new Cloudflare({
      baseURL: server.ready.api,
      apiEmail: "owner@selvedge.localhost",
      apiKey: ownerKey,
      apiToken: null,
      maxRetries: 0,
    });
    expect((await legacy.user.get()).email).toBe("owner@selvedge.localhost");
    const wrong = new Cloudflare({
      baseURL: server.ready.api,
      apiEmail: "owner@selvedge.localhost",
      apiKey: "wrong-key",
      apiToken: null,
      maxRetries: 0,
    });
    await expect(wrong.user.get()).rejects.toMatchObject({ status: 401 });
    const owned = await client.accounts.tokens.create({
      account_id: accountId,
      name: "ci",
      policies: [
        {
          effect: "allow",
          resources: { "com.cloudflare.api.account.zone.*": "*" },
          permission_groups: [{ id: "c8fed203ed3043cba015a93ad1616f1f" }],
        },
      ],
    });
    const ci = new Cloudflare({ baseURL: server.ready.api, apiToken: owned.value as string, maxRetries: 0 });
    expect((await collect(ci.zones.list())).length).toBeGreaterThan(0);
    expect(await ci.accounts.tokens.verify({ account_id: accountId })).toMatchObject({ status: "active" });
    await expect(ci.user.get()).rejects.toMatchObject({ status: 403 });
  });

  it("limits the rate of calls, and the client waits and goes on", async () => {
    const limited = await startTestServer({ apiRateLimit: 3 });
    const calls: number[] = [];
    for (let i = 0; i < 5; i++) calls.push((await limited.call("GET", "/user")).status);
    expect(calls).toEqual([200, 200, 200, 429, 429]);
    const refused = await limited.call("GET", "/user");
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    await limited.close(1000);

    const brief = await startTestServer({ apiRateLimit: 2, apiRateWindowSeconds: 1 });
    const patient = new Cloudflare({ baseURL: brief.ready.api, apiToken: ownerToken, maxRetries: 2 });
    const users = [];
    for (let i = 0; i < 5; i++) users.push(await patient.user.get());
    expect(users).toHaveLength(5);
    await brief.close(1000);
  });
});

describe("rulesets", () => {
  let origin: Server;
  afterAll(() => origin.close());
  it("an origin rule leads a proxied record to another port", async () => {
    origin = createServer((request, response) => response.end(`hello from ${request.headers.host}`));
    await new Promise<void>((resolve) => origin.listen(0, "127.0.0.1", resolve));
    const { port } = origin.address() as AddressInfo;
    const zone_id = await createZone("origin.example");
    await client.dns.records.create({
      zone_id,
      type: "A",
      name: "www",
      content: "127.0.0.1",
      ttl: 1,
      proxied: true,
    });
    const ruleset = (await client.rulesets.phases.update("http_request_origin", {
      zone_id,
      rules: [{ action: "route", expression: "true", action_parameters: { origin: { port } } }],
    })) as { id: string };
    expect(await client.rulesets.phases.get("http_request_origin", { zone_id })).toEqual(ruleset);
    const answer = await visit(server.ready.edge, "www.origin.example");
    expect(answer.body).toBe("hello from www.origin.example");
    await client.rulesets.phases.update("http_request_origin", {
      zone_id,
      rules: [
        { action: "route", expression: "true", action_parameters: { origin: { port: 1 } } },
        {
          action: "route",
          expression: 'http.host eq "www.origin.example" and starts_with(http.request.uri.path, "/app/")',
          action_parameters: { origin: { port }, host_header: "app.internal" },
        },
      ],
    });
    expect((await visit(server.ready.edge, "www.origin.example", "/app/x")).body).toBe(
      "hello from app.internal",
    );
    expect((await visit(server.ready.edge, "www.origin.example", "/other")).status).toBe(521);
    const misspelt = client.rulesets.phases.update("http_request_origin", {
      zone_id,
      rules: [{ action: "route", expression: 'http.hots eq "x"', action_parameters: { origin: { port } } }],
    });
    await expect(misspelt).rejects.toMatchObject({
      status: 400,
      errors: [
        {
          code: 20127,
          source: { pointer: "/body/rules/0/expression" },
          message: expect.stringMatching(
            /parsing error \(1:1\)[^]*unknown identifier[^]*Did you mean http\.host\?/,
          ) as string,
        },
      ],
    });
    await client.rulesets.delete(ruleset.id, { zone_id });
    await expect(client.rulesets.phases.get("http_request_origin", { zone_id })).rejects.toMatchObject({
      status: 404,
      errors: [{ code: 10003 }],
    });
  });
});
