import Cloudflare from "cloudflare";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Operation } from "../../src/control/api/operation.ts";
import { invitationOperations } from "../../src/control/members/api-invitations.ts";
import { memberOperations } from "../../src/control/members/api-members.ts";
import { membershipOperations } from "../../src/control/members/api-memberships.ts";
import { auditOperations } from "../../src/control/audit/api.ts";
import { assetOperations } from "../../src/workers/assets/uploads/api.ts";
import { assetListOperations } from "../../src/workers/assets/uploads/api-list.ts";
import { dispatchOperations } from "../../src/workers/dispatch/api.ts";
import { usageOperations } from "../../src/workers/dispatch/api-usage.ts";
import { namespaceOperations } from "../../src/workers/objects/api.ts";
import { objectOperations } from "../../src/workers/objects/api-object.ts";
import { d1Operations } from "../../src/products/d1/api.ts";
import { logpushOperations } from "../../src/products/logpush/api.ts";
import { kvOperations } from "../../src/products/kv/api.ts";
import { requestTracerOperations } from "../../src/products/request-tracer/api.ts";
import { imageOperations } from "../../src/products/images/api.ts";
import { operations } from "../../src/capabilities.ts";
import { dnssecOperations } from "../../src/dns/dnssec/api-dnssec.ts";
import { dnsSettingsOperations } from "../../src/dns/settings/api-settings.ts";
import { transferPartyOperations } from "../../src/dns/transfers/api-transfer-parties.ts";
import { outgoingTransferOperations } from "../../src/dns/transfers/api-transfers.ts";
import { botManagementOperations } from "../../src/edge/client-info/api.ts";
import { queueOperations } from "../../src/products/queues/api.ts";
import { rulesetOperations } from "../../src/control/rulesets/api.ts";
import { scheduleOperations } from "../../src/products/schedules/api.ts";
import { previewOperations } from "../../src/workers/previews/api.ts";
import { scriptOperations } from "../../src/workers/scripts/api.ts";
import { snippetOperations } from "../../src/products/snippets/api.ts";
import { tlsOperations } from "../../src/edge/tls/certificates/api.ts";
import { tailOperations } from "../../src/workers/tail/api.ts";
import { workflowOperations } from "../../src/products/workflows/api/api.ts";
import { recordingClient } from "../helpers/recording-client.ts";
import { startTestServer, type TestServer } from "../helpers/server.ts";

/** The official client calls every operation at least once and parses the response. */
let server: TestServer;
let client: Cloudflare;
let account_id: string;
let called: Set<string>;
/** Operations that other tests in this folder call. */
const calledElsewhere = new Set<Operation>([
  ...memberOperations,
  ...membershipOperations,
  ...invitationOperations,
  ...auditOperations,
  ...snippetOperations,
  ...requestTracerOperations,
  ...imageOperations,
  ...tlsOperations,
  ...assetOperations,
  ...assetListOperations,
  ...scriptOperations,
  ...previewOperations,
  ...dispatchOperations,
  ...usageOperations,
  ...namespaceOperations,
  ...objectOperations,
  ...kvOperations,
  ...d1Operations,
  ...dnssecOperations,
  ...dnsSettingsOperations,
  ...outgoingTransferOperations,
  ...transferPartyOperations,
  ...botManagementOperations,
  ...queueOperations,
  ...scheduleOperations,
  ...tailOperations,
  ...logpushOperations,
  ...workflowOperations,
  ...rulesetOperations.filter(({ id }) => id.endsWith("_snippets")),
]);

beforeAll(async () => {
  server = await startTestServer();
  account_id = server.ready.account_id;
  ({ client, called } = recordingClient(server, operations));
});
afterAll(() => server.close(1000));

type Loose = never;

it("the client calls operations on the user, accounts and memberships", async () => {
  expect((await client.user.edit({ first_name: "First" })) as object).toMatchObject({ first_name: "First" });
  expect(await client.user.get()).toMatchObject({ first_name: "First" });
  const account = await client.accounts.create({ name: "Second", type: "standard" });
  expect((await Array.fromAsync(client.accounts.list())).length).toBe(2);
  expect(await client.accounts.get({ account_id: account.id })).toEqual(account);
  const renamed = await client.accounts.update({
    account_id: account.id,
    id: account.id,
    name: "Renamed",
    type: "standard",
  });
  expect(renamed.name).toBe("Renamed");
  const memberships = await Array.fromAsync(client.memberships.list());
  const second = memberships.find((each) => each.account?.id === account.id)!;
  expect(await client.memberships.get(second.id!)).toMatchObject({ id: second.id });
  await client.accounts.delete({ account_id: account.id });
  expect(await Array.fromAsync(client.memberships.list())).toHaveLength(1);
  const third = await client.accounts.create({ name: "Third", type: "standard" });
  const left = (await Array.fromAsync(client.memberships.list())).find(
    (each) => each.account?.id === third.id,
  )!;
  await expect(client.memberships.delete(left.id!)).rejects.toMatchObject({ errors: [{ code: 1064 }] });
  await client.accounts.delete({ account_id: third.id });
});

it.each(["user", "account"] as const)("tokens of the %s", async (owner) => {
  const isUser = owner === "user";
  const scope = { account_id };
  const groups = await Array.fromAsync(
    isUser ? client.user.tokens.permissionGroups.list() : client.accounts.tokens.permissionGroups.list(scope),
  );
  const group = groups.find((each) => each.name === "Zone Read")!;
  const body = {
    name: "reader",
    policies: [
      {
        effect: "allow" as const,
        resources: { "com.cloudflare.api.account.zone.*": "*" },
        permission_groups: [{ id: group.id! }],
      },
    ],
  };
  const tokens = client.user.tokens;
  const owned = client.accounts.tokens;
  const created = isUser ? await tokens.create(body) : await owned.create({ ...scope, ...body });
  const id = created.id!;
  const scoped = new Cloudflare({
    baseURL: server.ready.api,
    apiToken: created.value as string,
    maxRetries: 0,
  });
  expect(await (isUser ? scoped.user.tokens.verify() : scoped.accounts.tokens.verify(scope))).toMatchObject({
    id,
    status: "active",
  });
  called.add(isUser ? "user_token_verify" : "account_token_verify");
  expect(
    (await Array.fromAsync(isUser ? tokens.list() : owned.list(scope))).map((each) => each.id),
  ).toContain(id);
  expect(await (isUser ? tokens.get(id) : owned.get(id, scope))).toMatchObject({ name: "reader" });
  const update = { ...body, name: "renamed" };
  expect(
    await (isUser ? tokens.update(id, update) : owned.update(id, { ...scope, ...update })),
  ).toMatchObject({ name: "renamed" });
  const value = await (isUser
    ? tokens.value.update(id, { body: {} })
    : owned.value.update(id, { ...scope, body: {} } as Loose));
  expect(value).not.toBe(created.value);
  expect(await (isUser ? tokens.delete(id) : owned.delete(id, scope))).toEqual({ id });
});

it("the client calls operations on zones and smart routing", async () => {
  const zone = await client.zones.create({ account: { id: account_id }, name: "all.example" });
  const zone_id = zone.id;
  expect(await Array.fromAsync(client.zones.list())).toHaveLength(1);
  expect((await client.zones.get({ zone_id })).id).toBe(zone_id);
  expect((await client.zones.edit({ zone_id, paused: true })).paused).toBe(true);
  expect((await client.zones.activationCheck.trigger({ zone_id })).id).toBe(zone_id);
  expect((await client.argo.smartRouting.edit({ zone_id, value: "on" })).value).toBe("on");
  expect((await client.argo.smartRouting.get({ zone_id })).value).toBe("on");
  // The client has no methods for our own operations.
  const nodes: { result: { name: string }[] } = await client.get(`/accounts/${account_id}/edge/nodes`);
  expect(nodes.result).toHaveLength(1);
  const overview: { result: { figures: null } } = await client.get(`/accounts/${account_id}/edge/overview`);
  expect(overview.result.figures).toBeNull(); // there is no listener of metrics
  const answer: { result: { rcode: string } } = await client.post(`/zones/${zone_id}/edge/dns_query`, {
    body: { name: "@", type: "SOA" },
  });
  expect(answer.result.rcode).toBe("NOERROR");
  const analytics: { result: object } = await client.get(`/zones/${zone_id}/edge/smart_routing/analytics`);
  expect(analytics.result).toMatchObject({
    smart: { requests: 0 },
    direct: { requests: 0 },
    p50_ratio: null,
  });
  expect((await client.zones.delete({ zone_id }))?.id).toBe(zone_id);
});

it("the client calls operations on the edge, plans and settings", async () => {
  const { id: zone_id } = await client.zones.create({ account: { id: account_id }, name: "true.example" });
  expect(await client.ips.list()).toMatchObject({ ipv4_cidrs: ["127.0.0.1/32"], ipv6_cidrs: [] });
  const plans = await Array.fromAsync(client.zones.plans.list({ zone_id }));
  expect(plans.filter((plan) => plan.is_subscribed).map((plan) => plan.legacy_id)).toEqual(["enterprise"]);
  const [first] = plans;
  expect(await client.zones.plans.get(first!.id!, { zone_id })).toEqual(first);
  expect(await Array.fromAsync(client.rulesets.list({ account_id }))).toEqual([]);
  const refused = {
    status: 404,
    errors: [{ code: 7010, message: "Cache is not part of this installation" }],
  };
  await expect(client.cache.purge({ zone_id, purge_everything: true })).rejects.toMatchObject(refused);
  await expect(client.cache.purge({ zone_id })).rejects.toMatchObject({
    errors: [{ code: 1012 }],
  });
  // The client has no methods for all settings at once, but older versions and other programs do.
  const path = `/zones/${zone_id}/settings`;
  const listed: { result: { id: string; value: unknown }[] } = await client.get(path);
  for (const setting of listed.result) {
    expect(await client.zones.settings.get(setting.id as Loose, { zone_id })).toEqual(setting);
    const same = { zone_id, value: setting.value } as Loose;
    expect(await client.zones.settings.edit(setting.id as Loose, same)).toMatchObject({
      value: setting.value,
    });
  }
  await client.patch(path, { body: { items: [{ id: "ssl", value: "strict" }] } });
});

it("the client calls operations on DNS records", async () => {
  const { id: zone_id } = await client.zones.create({ account: { id: account_id }, name: "dns.example" });
  const { records } = client.dns;
  const made = await records.create({ zone_id, type: "A", name: "a", content: "192.0.2.1", ttl: 60 });
  expect(await Array.fromAsync(records.list({ zone_id }))).toHaveLength(1);
  expect(await records.get(made.id, { zone_id })).toEqual(made);
  await records.update(made.id, { zone_id, type: "A", name: "a", content: "192.0.2.2", ttl: 60 });
  await records.edit(made.id, { zone_id, comment: "edited" } as Loose);
  await records.batch({ zone_id, posts: [{ type: "TXT", name: "b", content: '"b"', ttl: 60 }] });
  expect(await records.export({ zone_id })).toContain("192.0.2.2");
  await records.import({ zone_id, file: "c 60 IN A 192.0.2.3\n" });
  await records.scan({ zone_id, body: {} } as Loose);
  await records.scanTrigger({ zone_id });
  expect(await Array.fromAsync(records.scanList({ zone_id }))).toEqual([]);
  await records.scanReview({ zone_id });
  expect(await client.dns.usage.zone.get({ zone_id })).toMatchObject({ record_usage: 3 });
  expect(await client.dns.usage.account.get({ account_id })).toMatchObject({ record_usage: 3 });
  expect(await records.delete(made.id, { zone_id })).toEqual({ id: made.id });
});

// The client declares its rules as `unknown`.
interface Ruleset {
  id: string;
  rules: { id: string; version: string; enabled: boolean }[];
}

it("the client calls operations on rulesets", async () => {
  const { id: zone_id } = await client.zones.create({ account: { id: account_id }, name: "rules.example" });
  const rule = { action: "route" as const, expression: "ssl", action_parameters: { origin: { port: 8443 } } };
  const phase = "http_request_origin" as const;
  const { rulesets } = client;
  const made = (await rulesets.create({
    zone_id,
    name: "mine",
    kind: "zone",
    phase,
    rules: [rule],
  })) as Ruleset;
  const ruleset_id = made.id;
  expect((await Array.fromAsync(rulesets.list({ zone_id }))).map((each) => each.id)).toEqual([made.id]);
  expect(await rulesets.get(ruleset_id, { zone_id })).toEqual(made);
  expect(
    ((await rulesets.update(ruleset_id, { zone_id, rules: [rule, rule] })) as Ruleset).rules,
  ).toHaveLength(2);
  const added = (await rulesets.rules.create(ruleset_id, { zone_id, ...rule })) as Ruleset;
  expect(added.rules).toHaveLength(3);
  const ruleId = added.rules[2]!.id;
  const change = { ruleset_id, zone_id, ...rule, enabled: false };
  const edited = (await rulesets.rules.edit(ruleId, change)) as Ruleset;
  expect(edited.rules[2]).toMatchObject({ id: ruleId, version: "2", enabled: false });
  const shorter = (await rulesets.rules.delete(ruleId, { ruleset_id, zone_id })) as Ruleset;
  expect(shorter.rules).toHaveLength(2);
  expect(((await rulesets.phases.update(phase, { zone_id, rules: [] })) as Ruleset).rules).toEqual([]);
  expect(((await rulesets.phases.get(phase, { zone_id })) as Ruleset).id).toBe(ruleset_id);
  await rulesets.delete(ruleset_id, { zone_id });
});

it("every operation has been called", () => {
  const expected = operations.filter((operation) => !calledElsewhere.has(operation));
  expect(expected.map(({ id }) => id).filter((id) => !called.has(id))).toEqual([]);
});
