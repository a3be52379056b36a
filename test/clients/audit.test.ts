import type Cloudflare from "cloudflare";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { auditOperations } from "../../src/control/audit/api.ts";
import { recordingClient } from "../helpers/recording-client.ts";
import { startTestServer, type TestServer } from "../helpers/server.ts";

/** The official client reads the audit log, of a server on which each test makes its changes. */
let server: TestServer;
let client: Cloudflare;
let account_id: string;
let zone_id: string;
let called: Set<string>;
const window = { since: "2020-01-01", before: "2100-01-01T00:00:00Z" };

type AuditLog = Awaited<ReturnType<Cloudflare["auditLogs"]["list"]>>["result"][number];
type Entry = Cloudflare.Accounts.Logs.AuditListResponse;
type Filters = Omit<Cloudflare.Accounts.Logs.AuditListParams, "account_id" | "before" | "since">;

beforeAll(async () => {
  server = await startTestServer();
  account_id = server.ready.account_id;
  ({ client, called } = recordingClient(server, auditOperations));
  zone_id = await server.newZone("audit.example");
});
afterAll(() => server.close(1000));

const entries = (filters: object = {}): Promise<Entry[]> =>
  Array.fromAsync(client.accounts.logs.audit.list({ account_id, ...window, ...(filters as Filters) }));

describe("version 2", () => {
  it("tells who changed what, with the resource before and the request", async () => {
    const record = await client.dns.records.create({
      ...{ zone_id, type: "A", name: "www", ttl: 300 },
      content: "192.0.2.1",
    });
    await client.dns.records.edit(record.id, {
      zone_id,
      type: "A",
      name: "www",
      ttl: 300,
      content: "192.0.2.2",
    });
    await client.dns.records.delete(record.id, { zone_id });
    const [deleted, edited, created] = await entries({ limit: 3 });
    expect(created).toMatchObject({
      account: { id: account_id },
      action: { result: "success", type: "create", description: "Create a record" },
      actor: {
        context: "api_token",
        type: "user",
        ip_address: "127.0.0.1",
        token_id: expect.any(String) as string,
      },
      raw: { method: "POST", status_code: 200, uri: `/client/v4/zones/${zone_id}/dns_records` },
      resource: {
        id: record.id,
        product: "dns_records",
        type: "dns_records",
        scope: "zones",
        request: { name: "www", content: "192.0.2.1" },
      },
      zone: { id: zone_id, name: "audit.example" },
    });
    expect(edited).toMatchObject({
      action: { type: "update" },
      resource: { id: record.id, request: { content: "192.0.2.2" }, before: { content: "192.0.2.1" } },
    });
    expect(deleted).toMatchObject({
      action: { type: "delete" },
      resource: { id: record.id, before: { content: "192.0.2.2" } },
    });
    expect(Date.parse(deleted!.action!.time!)).toBeGreaterThan(Date.now() - 60_000);
  });

  it("shows the record before each change, also of changes at the same time", async () => {
    const of = { zone_id, type: "A", name: "often", ttl: 300 } as const;
    const { id } = await client.dns.records.create({ ...of, content: "192.0.2.0" });
    const change = async (i: number): Promise<unknown> =>
      i % 2 === 0
        ? client.dns.records.edit(id, { ...of, content: `192.0.2.${i}` })
        : client.dns.records.update(id, { ...of, content: `192.0.2.${i}` });
    await Promise.all(Array.from({ length: 20 }, (_, i) => change(i + 1)));
    await client.dns.records.delete(id, { zone_id });
    const found = await entries({ resource_id: id, direction: "asc" });
    const content = (part: unknown): unknown => (part as { content?: string } | undefined)?.content;
    expect(found.length).toBe(22);
    // Each change began where the one before it had ended.
    expect(found.slice(1).map(({ resource }) => content((resource as { before?: unknown }).before))).toEqual(
      found.slice(0, -1).map(({ resource }) => content(resource!.request)),
    );
  });

  it("walks pages by cursor, in both directions", async () => {
    for (let i = 0; i < 7; i++) await client.zones.edit({ zone_id, paused: i % 2 === 0 });
    // The platform adds an entry when it has checked the zone, which may come between two walks.
    await vi.waitFor(async () => {
      const whole = await entries({ limit: 1000 });
      const newest = await entries({ limit: 3 });
      const oldest = await entries({ limit: 2, direction: "asc" });
      expect(newest.map(({ id }) => id)).toEqual(whole.map(({ id }) => id));
      expect(oldest.map(({ id }) => id).toReversed()).toEqual(whole.map(({ id }) => id));
      expect(new Set(whole.map(({ id }) => id)).size).toBe(whole.length);
    });
  });

  it("filters by each field, and by its absence", async () => {
    const all = await entries();
    const [some] = await entries({ resource_product: "dns_records" });
    const { id, account, action, actor, raw, resource, zone } = some as Required<Entry>;
    const values: Record<string, unknown> = {
      id,
      audit_log_id: id,
      account_name: account.name,
      action_result: action.result,
      action_type: action.type,
      actor_context: actor.context,
      actor_email: actor.email,
      actor_id: actor.id,
      actor_ip_address: actor.ip_address,
      actor_token_id: actor.token_id,
      actor_token_name: actor.token_name,
      actor_type: actor.type,
      raw_cf_ray_id: raw.cf_ray_id,
      raw_method: raw.method,
      raw_status_code: raw.status_code,
      raw_uri: raw.uri,
      resource_id: resource.id,
      resource_product: resource.product,
      resource_scope: resource.scope,
      resource_type: resource.type,
      zone_id: zone.id,
      zone_name: zone.name,
    };
    for (const [name, value] of Object.entries(values)) {
      expect([name, value]).toEqual([name, expect.anything()]);
      const [having, lacking] = [
        await entries({ [name]: value }),
        await entries({ [name]: { not: [value] } }),
      ];
      expect([name, having.some((each) => each.id === id)]).toEqual([name, true]);
      expect([name, lacking.some((each) => each.id === id)]).toEqual([name, false]);
      // Each entry is in one of the two; the system may have left another one meanwhile.
      const found = [...having, ...lacking].map((each) => each.id);
      expect([name, new Set(found).size]).toEqual([name, found.length]);
      expect([name, all.filter((each) => !found.includes(each.id))]).toEqual([name, []]);
    }
    expect((await entries({ id: [id, all[0]!.id] })).length).toBe(new Set([id, all[0]!.id]).size);
  });

  it("filters by categories of products", async () => {
    const categories = await Array.fromAsync(client.accounts.logs.audit.productCategories({ account_id }));
    expect(categories.map(({ value }) => value)).toContain("dns");
    const inDns = await entries({ product_category: ["DNS"] });
    expect(new Set(inDns.map(({ resource }) => resource!.product))).toEqual(new Set(["dns_records"]));
    const both = await entries({ product_category: ["dns"], resource_product: "zone" });
    expect(new Set(both.map(({ resource }) => resource!.product))).toEqual(new Set(["dns_records", "zone"]));
    await expect(entries({ product_category: ["nothing"] })).rejects.toThrow(
      /Expected one of .* for product_category/,
    );
  });

  it("shows the history of a resource", async () => {
    const record = await client.dns.records.create({
      zone_id,
      type: "TXT",
      name: "h",
      content: '"a"',
      ttl: 300,
    });
    await client.dns.records.edit(record.id, { zone_id, type: "TXT", name: "h", content: '"b"', ttl: 300 });
    const [edited] = await entries({ limit: 1 });
    const action_time = edited!.action!.time!;
    const history = await client.accounts.logs.audit.history(edited!.id!, {
      account_id,
      action_time,
      ...window,
    });
    expect(history.map(({ action }) => action!.type)).toEqual(["update", "create"]);
    const missing = client.accounts.logs.audit.history("no-entry", { account_id, action_time, ...window });
    await expect(missing).rejects.toThrow(/No audit entry has the id/);
  });

  it("refuses unknown filters, wrong cursors and windows without an end, by name", async () => {
    const path = `/accounts/${account_id}/logs/audit`;
    for (const [query, pointer] of [
      ["since=2020-01-01", "/query/before"],
      ["since=2020-01-01&before=soon", "/query/before"],
      ["since=2020-01-01&before=2100-01-01&cursor=x", "/query/cursor"],
      ["since=2020-01-01&before=2100-01-01&actor_type=robot", "/query/actor_type"],
      ["since=2020-01-01&before=2100-01-01&actor_shoe_size=45", "/query/actor_shoe_size"],
    ] as const) {
      const { status, body } = await server.call("GET", `${path}?${query}`);
      expect([query, status, body.errors[0]!.source?.pointer]).toEqual([query, 400, pointer]);
    }
  });
});

describe("version 1", () => {
  it("walks the account's and the user's pages", async () => {
    await client.user.edit({ first_name: "First" });
    // The platform adds an entry when it has checked the zone, which may come between two walks.
    await vi.waitFor(async () => {
      const ofAccount = await Array.fromAsync(client.auditLogs.list({ account_id, per_page: 4 }));
      expect(ofAccount.map(({ id }) => id)).toEqual((await entries()).map(({ id }) => id));
    });
    const ofUser = await Array.fromAsync(client.user.auditLogs.list({ per_page: 3 }));
    expect(ofUser[0]).toMatchObject({
      action: { result: true, type: "user_edit" },
      resource: { type: "user" },
    });
    const quiet = await Array.fromAsync(client.user.auditLogs.list({ hide_user_logs: true }));
    expect(quiet.some(({ action }) => action!.type === "user_edit")).toBe(false);
  });

  it("shows old and new values, and filters", async () => {
    const record = await client.dns.records.create({
      zone_id,
      type: "A",
      name: "v1",
      content: "192.0.2.1",
      ttl: 300,
    });
    await client.dns.records.edit(record.id, {
      zone_id,
      type: "A",
      name: "v1",
      content: "192.0.2.9",
      ttl: 300,
    });
    const list = (query: object): Promise<AuditLog[]> =>
      Array.fromAsync(client.auditLogs.list({ account_id, ...query }));
    const [edit] = await list({ action: { type: "dns_record_edit" } });
    expect(JSON.parse(edit!.oldValue!)).toMatchObject({ content: "192.0.2.1", type: "A" });
    expect(JSON.parse(edit!.newValue!)).toMatchObject({ content: "192.0.2.9", type: "A", id: record.id });
    const { email } = (await client.user.get()) as { email: string };
    const total = (await list({})).length;
    const bySystem = (await entries({ actor_type: "system" })).length;
    expect((await list({ actor: { email } })).length).toBe(total - bySystem);
    expect((await list({ actor: { ip: "127.0.0.0/8" } })).length).toBe(total - bySystem);
    expect(await list({ actor: { ip: "192.0.2.0/24" } })).toEqual([]);
    expect((await list({ zone: { name: "audit.example" } })).length).toBeGreaterThan(1);
    expect((await list({ id: edit!.id })).map(({ id }) => id)).toEqual([edit!.id]);
    expect(await list({ before: "2020-01-01" })).toEqual([]);
    expect((await list({ since: "2020-01-01", direction: "asc" }))[0]!.when! <= edit!.when!).toBe(true);
    await expect(list({ export: true })).rejects.toThrow(/Expected no export/);
  });
});

it("refused calls leave one entry a minute for each actor", async () => {
  const narrow = await server.clientWith("Zone Read", {
    [`com.cloudflare.api.account.zone.${zone_id}`]: "*",
  });
  for (let i = 0; i < 3; i++)
    await expect(narrow.zones.edit({ zone_id, paused: true })).rejects.toThrow(/403/);
  for (let i = 0; i < 3; i++)
    expect(
      (await server.call("GET", `/accounts/${account_id}`, undefined, { authorization: "Bearer x" })).status,
    ).toBe(401);
  const refused = await vi.waitFor(async () => {
    const found = await entries({ action_result: "failure" });
    expect(found.length).toBe(2);
    return found;
  });
  expect(refused).toMatchObject([
    { raw: { status_code: 401, method: "GET" }, action: { type: "view" } },
    { raw: { status_code: 403, method: "PATCH" }, actor: { token_name: "Zone Read" }, zone: { id: zone_id } },
  ]);
  expect(refused[0]!.actor).not.toHaveProperty("token_id");
});

it("entries of a deleted token and a deleted account stay readable", async () => {
  const other = await client.accounts.create({ name: "Gone", type: "standard" });
  await client.accounts.delete({ account_id: other.id });
  const mine = await Array.fromAsync(client.user.auditLogs.list({ action: { type: "account_delete" } }));
  expect(mine[0]).toMatchObject({ owner: { id: other.id } });
  const brief = await server.clientWith("Zone Write", {
    [`com.cloudflare.api.account.zone.${zone_id}`]: "*",
  });
  await brief.zones.edit({ zone_id, paused: false });
  const [entry] = await entries({ actor_token_name: "Zone Write" });
  await client.user.tokens.delete(entry!.actor!.token_id!);
  expect(await entries({ actor_token_id: entry!.actor!.token_id })).toEqual([entry]);
});

it("the client has called each operation of the audit log", () => {
  expect(auditOperations.map(({ id }) => id).filter((id) => !called.has(id))).toEqual([]);
});
