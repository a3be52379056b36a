import type Cloudflare from "cloudflare";
import { afterAll, beforeAll, expect, it } from "vitest";
import { operations } from "../../src/capabilities.ts";
import { dnssecOperations } from "../../src/dns/dnssec/api-dnssec.ts";
import { dnsSettingsOperations } from "../../src/dns/settings/api-settings.ts";
import { transferPartyOperations } from "../../src/dns/transfers/api-transfer-parties.ts";
import { outgoingTransferOperations } from "../../src/dns/transfers/api-transfers.ts";
import { recordingClient } from "../helpers/recording-client.ts";
import { startTestServer, type TestServer } from "../helpers/server.ts";

/** The official client manages DNSSEC, DNS settings and transfers of zones, and parses every response. */
let server: TestServer;
let client: Cloudflare;
let called: Set<string>;
let zone_id: string;

beforeAll(async () => {
  server = await startTestServer();
  ({ client, called } = recordingClient(server, operations));
  const account = { id: server.ready.account_id };
  zone_id = (await client.zones.create({ account, name: "answers.example" })).id;
});
afterAll(() => server.close(1000));

it("enables and disables the signing of a zone", async () => {
  const { dnssec } = client.dns;
  expect(await dnssec.get({ zone_id })).toMatchObject({ status: "disabled", ds: null });
  const signed = await dnssec.edit({ zone_id, status: "active" });
  expect(signed).toMatchObject({ status: "pending", flags: 257, algorithm: "13", digest_type: "2" });
  expect(signed.ds).toBe(`answers.example. 3600 IN DS ${signed.key_tag} 13 2 ${signed.digest}`);
  // Under the static policy, the parent counts as updated.
  await expect.poll(async () => (await dnssec.get({ zone_id })).status).toBe("active");
  expect(await dnssec.edit({ zone_id, status: "disabled" })).toMatchObject({ status: "pending-disabled" });
  await expect.poll(async () => (await dnssec.get({ zone_id })).status).toBe("disabled");
  await dnssec.delete({ zone_id });
  expect(await dnssec.get({ zone_id })).toMatchObject({ status: "disabled", modified_on: null });
});

it("changes the DNS settings of a zone", async () => {
  const { zone } = client.dns.settings;
  expect(await zone.get({ zone_id })).toMatchObject({ ns_ttl: 86_400, flatten_all_cnames: false });
  const edited = await zone.edit({ zone_id, ns_ttl: 3600, flatten_all_cnames: true });
  expect(edited).toMatchObject({ ns_ttl: 3600, flatten_all_cnames: true });
  expect(await zone.get({ zone_id })).toEqual(edited);
});

it("manages the outgoing transfer of a zone", async () => {
  const account_id = server.ready.account_id;
  const { acls, tsigs, peers, outgoing } = client.dns.zoneTransfers;

  const network = { account_id, name: "office", ip_range: "192.0.2.0/28" };
  const acl = await acls.create(network);
  expect(await acls.get(acl.id, { account_id })).toEqual(acl);
  const wider = { ...network, ip_range: "2001:db8::/32" };
  expect((await acls.update(acl.id, wider)).ip_range).toBe("2001:db8::/32");
  expect(await Array.fromAsync(acls.list({ account_id }))).toHaveLength(1);

  const secret = Buffer.from("a secret of a few bytes").toString("base64");
  const tsig = await tsigs.create({ account_id, name: "key.example.", algo: "hmac-sha256.", secret });
  const stronger = { account_id, name: "key.example.", algo: "hmac-sha512.", secret };
  expect((await tsigs.update(tsig.id, stronger)).algo).toBe("hmac-sha512.");
  expect(await tsigs.get(tsig.id, { account_id })).toMatchObject({ name: "key.example.", secret });
  expect(await Array.fromAsync(tsigs.list({ account_id }))).toHaveLength(1);

  const made = await peers.create({ account_id, name: "secondary" });
  const peer = await peers.update(made.id, {
    account_id,
    name: "secondary",
    ip: "192.0.2.53",
    port: 5353,
    ixfr_enable: true,
    tsig_id: tsig.id,
  });
  expect(await peers.get(peer.id, { account_id })).toEqual(peer);
  expect(await Array.fromAsync(peers.list({ account_id }))).toEqual([peer]);

  const transfers = async (): Promise<unknown> => {
    const answer: { result: unknown } = await client.get(`/zones/${zone_id}/edge/transfers`);
    return answer.result;
  };
  expect(await transfers()).toEqual({ outgoing: null });
  const given = await outgoing.create({ zone_id, name: "answers.example", peers: [] });
  expect(given).toMatchObject({ id: zone_id, peers: [], last_transferred_time: null });
  const changed = await outgoing.update({ zone_id, name: "answers.example", peers: [peer.id] });
  expect(await outgoing.get({ zone_id })).toEqual(changed);
  expect(await outgoing.status.get({ zone_id })).toBe("Disabled");
  expect(await transfers()).toEqual({ outgoing: { ...changed, status: "Disabled" } });
  expect(await outgoing.enable({ zone_id, body: {} } as never)).toBe("Enabled");
  expect(await outgoing.forceNotify({ zone_id, body: {} } as never)).toBe("OK");
  expect(await outgoing.disable({ zone_id, body: {} } as never)).toBe("Disabled");

  await expect(peers.delete(peer.id, { account_id })).rejects.toMatchObject({ status: 409 });
  await expect(tsigs.delete(tsig.id, { account_id })).rejects.toMatchObject({ status: 409 });
  expect(await outgoing.delete({ zone_id })).toEqual({ id: zone_id });
  expect(await peers.delete(peer.id, { account_id })).toEqual({ id: peer.id });
  expect(await tsigs.delete(tsig.id, { account_id })).toEqual({ id: tsig.id });
  expect(await acls.delete(acl.id, { account_id })).toEqual({ id: acl.id });
});

it("every operation has been called", () => {
  const expected = [
    ...dnssecOperations,
    ...dnsSettingsOperations,
    ...outgoingTransferOperations,
    ...transferPartyOperations,
  ];
  expect(expected.map(({ id }) => id).filter((id) => !called.has(id))).toEqual([]);
});
