import Cloudflare from "cloudflare";
import { afterAll, describe, expect, it } from "vitest";
import { ownerKey, ownerToken, startTestServer } from "../helpers/server.ts";

const server = await startTestServer();
afterAll(() => server.close(1000));
const { client } = server;
const accountId = server.ready.account_id;

it("verifies a token and reads the user, accounts and memberships", async () => {
  expect(await client.user.tokens.verify()).toMatchObject({ status: "active" });
  expect(await client.user.get()).toMatchObject({ email: "owner@selvedge.localhost" });
  expect((await Array.fromAsync(client.accounts.list())).map(({ id }) => id)).toContain(accountId);
  expect((await Array.fromAsync(client.memberships.list())).map(({ account }) => account?.id)).toContain(
    accountId,
  );
  expect(await client.accounts.get({ account_id: accountId })).toMatchObject({ id: accountId });
});

it("creates, changes, rolls and deletes tokens, and shows their value only once", async () => {
  const groups = await Array.fromAsync(client.user.tokens.permissionGroups.list());
  const dnsWrite = groups.find((group) => group.name === "DNS Write")!;
  const zone_id = await server.newZone("scoped.example");
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
  expect((await Array.fromAsync(scoped.zones.list())).map(({ id }) => id)).toEqual([zone_id]);
  expect(await client.user.tokens.get(token.id!)).not.toHaveProperty("value");
  const rolled = await client.user.tokens.value.update(token.id!, { body: {} });
  await expect(scoped.dns.records.list({ zone_id })).rejects.toMatchObject({ status: 401 });
  const again = new Cloudflare({ baseURL: server.ready.api, apiToken: rolled, maxRetries: 0 });
  expect(await Array.fromAsync(again.dns.records.list({ zone_id }))).toHaveLength(1);
  await client.user.tokens.update(token.id!, {
    name: "dns",
    status: "disabled",
    policies: token.policies as never,
  });
  await expect(again.dns.records.list({ zone_id })).rejects.toMatchObject({ status: 401 });
  expect(await client.user.tokens.delete(token.id!)).toEqual({ id: token.id });
});

it("limits tokens to their lifetime, addresses and owner", async () => {
  const zone_id = await server.newZone("conditions.example");
  const resources = { [`com.cloudflare.api.account.zone.${zone_id}`]: "*" };
  const past = "2020-01-01T00:00:00Z";
  const future = "2099-01-01T00:00:00Z";
  const list = async (more: object): Promise<unknown> => {
    const scoped = await server.clientWith("DNS Read", resources, more);
    return Array.fromAsync(scoped.dns.records.list({ zone_id })).catch(
      (error: { status: number }) => error.status,
    );
  };
  expect(await list({ not_before: past, expires_on: future })).toEqual([]);
  expect(await list({ expires_on: past })).toBe(401);
  expect(await list({ not_before: future })).toBe(401);
  expect(await list({ condition: { request_ip: { in: ["127.0.0.0/8", "::1"] } } })).toEqual([]);
  expect(await list({ condition: { request_ip: { in: ["192.0.2.0/24"] } } })).toBe(403);
  expect(await list({ condition: { request_ip: { not_in: ["127.0.0.1"] } } })).toBe(403);
});

it("does not let a token create a stronger one", async () => {
  const userId = (await client.user.get()).id;
  const maker = await server.clientWith("API Tokens Write", { [`com.cloudflare.api.user.${userId}`]: "*" });
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

describe("a token that may edit tokens", () => {
  const allow = (resources: object, ...names: string[]) => ({
    effect: "allow",
    resources,
    permission_groups: names.map((name) => ({ name })),
  });
  const account = (id: string) => ({ [`com.cloudflare.api.account.${id}`]: "*" });
  const token = async (path: string, policies: object[], by?: string, more: object = {}) => {
    const headers = by === undefined ? {} : { authorization: `Bearer ${by}` };
    return server.call("POST", path, { name: "t", policies, ...more }, headers);
  };

  it.each(["user", "account"] as const)(
    "does not roll, change or delete a stronger one of the %s",
    async (of) => {
      const user = { [`com.cloudflare.api.user.${(await client.user.get()).id}`]: "*" };
      const path = of === "user" ? "/user/tokens" : `/accounts/${accountId}/tokens`;
      const edits =
        of === "user"
          ? allow(user, "API Tokens Write")
          : allow(account(accountId), "Account API Tokens Write");
      const stronger = (
        await token(path, [edits, allow({ "com.cloudflare.api.account.zone.*": "*" }, "DNS Write")])
      ).body.result as { id: string; policies: object[] };
      const equal = (await token(path, [edits])).body.result as { id: string };
      const by = (await token(path, [edits])).body.result as { value: string };
      const headers = { authorization: `Bearer ${by.value}` };
      for (const [method, one, body] of [
        ["PUT", "/value", {}],
        ["PUT", "", { name: "t", policies: [edits] }],
        ["PUT", "", { name: "t", policies: stronger.policies, status: "disabled" }],
        ["DELETE", "", undefined],
      ] as const) {
        expect(await server.call(method, `${path}/${stronger.id}${one}`, body, headers)).toMatchObject({
          status: 403,
          body: { errors: [{ code: 1052, message: expect.stringContaining('"DNS') }] },
        });
      }
      expect((await server.call("PUT", `${path}/${equal.id}/value`, {}, headers)).status).toBe(200);
      expect((await server.call("DELETE", `${path}/${equal.id}`, undefined, headers)).status).toBe(200);
    },
  );

  it("for one account creates none for all accounts, and none without its own limits", async () => {
    const user = { [`com.cloudflare.api.user.${(await client.user.get()).id}`]: "*" };
    const own = [
      allow(user, "API Tokens Write"),
      allow(account(accountId), "Account Settings Read", "Account API Tokens Write"),
    ];
    const limits = {
      expires_on: "2099-01-01T00:00:00Z",
      condition: { request_ip: { in: ["127.0.0.0/8", "::1"] } },
    };
    const { value } = (await token("/user/tokens", own, undefined, limits)).body.result as { value: string };
    const wanted = (id: string): object[] => [allow(account(id), "Account Settings Read")];
    for (const path of ["/user/tokens", `/accounts/${accountId}/tokens`]) {
      expect((await token(path, wanted("*"), value, limits)).status).toBe(403);
      expect((await token(path, wanted(accountId), value, { ...limits, condition: null })).status).toBe(403);
      expect((await token(path, wanted(accountId), value, { condition: limits.condition })).status).toBe(403);
      expect((await token(path, wanted(accountId), value, limits)).status).toBe(200);
    }
  });

  it("names only existing resources within its reach", async () => {
    const { accounts } = server.services;
    const ownerUserId = (await accounts.createUser({ email: "other@example.com", apiKeyHash: null })).id;
    const { id: other } = await accounts.create({ name: "Other's", type: "standard", ownerUserId });
    const unknown = "f".repeat(32);
    const zone_id = await server.newZone("named.example");
    for (const resources of [
      account(unknown),
      account(other),
      { [`com.cloudflare.api.account.zone.${unknown}`]: "*" },
      { [`com.cloudflare.api.account.${other}`]: { [`com.cloudflare.api.account.zone.${zone_id}`]: "*" } },
      { [`com.cloudflare.api.user.${unknown}`]: "*" },
    ]) {
      const group = "Account Settings Read";
      expect(
        await token("/user/tokens", [allow(resources, group, "DNS Read", "User Details Read")]),
      ).toMatchObject({
        status: 400,
        body: { errors: [{ code: 9207, source: { pointer: "/body/policies/0/resources" } }] },
      });
    }
    // Resources deleted since may be sent back.
    const zone = { [`com.cloudflare.api.account.zone.${zone_id}`]: "*" };
    const made = (await token("/user/tokens", [allow(zone, "DNS Read")])).body.result as { id: string };
    await client.zones.delete({ zone_id });
    const same = { name: "renamed", policies: [allow(zone, "DNS Read")] };
    expect((await server.call("PUT", `/user/tokens/${made.id}`, same)).status).toBe(200);
  });

  it("grants permissions only on their own kind of resource", async () => {
    const zone_id = await server.newZone("kinds.example");
    const mixed = await token("/user/tokens", [
      allow(account(accountId), "Account Settings Read", "Workers Routes Write", "DNS Read"),
    ]);
    expect(mixed.body.messages).toMatchObject([{ message: expect.stringContaining('"DNS Read"') }]);
    const { value } = mixed.body.result as { value: string };
    const headers = { authorization: `Bearer ${value}` };
    expect((await server.call("GET", `/accounts/${accountId}`, undefined, headers)).status).toBe(200);
    expect((await server.call("GET", `/zones/${zone_id}/dns_records`, undefined, headers)).status).toBe(403);
    const nested = { [`com.cloudflare.api.account.${accountId}`]: { "com.cloudflare.api.account.*": "*" } };
    for (const policy of [allow(account(accountId), "DNS Read"), allow(nested, "Account Settings Read")])
      expect((await token("/user/tokens", [policy])).status).toBe(400);
  });
});

it("accepts the legacy key, and account-owned tokens", async () => {
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
  expect((await Array.fromAsync(ci.zones.list())).length).toBeGreaterThan(0);
  expect(await ci.accounts.tokens.verify({ account_id: accountId })).toMatchObject({ status: "active" });
  await expect(ci.user.get()).rejects.toMatchObject({ status: 403 });
});

it("limits the rate of calls, and the client waits and continues", async () => {
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
