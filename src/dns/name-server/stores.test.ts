import { afterEach, beforeEach, expect, it } from "vitest";
import { describeStorage } from "../../../test/helpers/storage-matrix.ts";
import { Accounts } from "../../control/accounts/accounts.ts";
import type { Storage } from "../../platform/storage/storage.ts";
import { newId } from "../../platform/util/ids.ts";
import { staticActivation } from "../../control/zones/activation.ts";
import * as zoneStore from "../../control/zones/store.ts";
import type { Zone } from "../../control/zones/zone.ts";
import { Zones } from "../../control/zones/zones.ts";
import { DnsSettingsOfZones, dnsSettingsDefaults } from "../settings/dns-settings.ts";
import { Dnssec } from "../dnssec/dnssec.ts";
import { OutgoingTransfers } from "../transfers/outgoing.ts";

describeStorage("the stored state of the name server", (open) => {
  let storage: Storage;
  let zones: Zones;
  let zone: Zone;
  beforeEach(async () => {
    storage = await open();
    const accounts = new Accounts(storage);
    const user = await accounts.createUser({ email: "owner@example.com", apiKeyHash: null });
    const { id: accountId } = await accounts.create({ name: "a", type: "enterprise", ownerUserId: user.id });
    const options = {
      nameServers: ["a.ns.example"],
      defaultPlan: "enterprise",
      activation: staticActivation,
    };
    zones = new Zones(storage, options as never);
    zone = await zones.create({ accountId, name: "example.com", type: "full" });
  });
  afterEach(() => storage.close());
  const serial = async (): Promise<number> => (await zoneStore.find(storage.read, zone.id))!.serial;

  it("keeps the signing state and key until they or the zone are deleted", async () => {
    const dnssec = new Dnssec(storage, 0);
    const before = await serial();
    await dnssec.edit(zone, { status: "active", isMultiSigner: true });
    expect(await serial()).toBeGreaterThan(before);
    const again = new Dnssec(storage, 0);
    await again.load();
    expect(again.find(zone.id)).toEqual(dnssec.find(zone.id));
    expect(again.keyOf(zone.id)).toMatchObject({ isMultiSigner: true, isLeaving: false });

    await dnssec.checkParents(
      () => zone.name,
      async () => "follows",
    );
    await dnssec.edit(zone, { status: "disabled" });
    expect(dnssec.keyOf(zone.id)).toMatchObject({ isLeaving: true });
    await expect(dnssec.delete(zone)).rejects.toMatchObject({ kind: "dnssec.stillSigned" });
    await zones.delete(zone);
    expect([dnssec.find(zone.id), again.find(zone.id)]).toEqual([undefined, undefined]);
  });

  it("keeps the DNS settings", async () => {
    const settings = new DnsSettingsOfZones(storage);
    const changed = { ...dnsSettingsDefaults, ns_ttl: 60, flatten_all_cnames: true };
    await settings.save(zone.id, changed);
    await settings.save(zone.id, { ...changed, ns_ttl: 61 });
    const again = new DnsSettingsOfZones(storage);
    await again.load();
    expect(again.find(zone.id)).toEqual({ ...changed, ns_ttl: 61 });
    await zones.delete(zone);
    expect(again.find(zone.id)).toEqual(dnsSettingsDefaults);
  });

  it("keeps the outgoing transfers, and notifies listeners of changes", async () => {
    const transfers = new OutgoingTransfers(storage);
    let notified = 0;
    transfers.onChange(() => notified++);
    const own = () => ({ id: newId(), accountId: zone.accountId, createdOn: Date.now() });
    const algorithm = "hmac-sha512." as const;
    const secret = await transfers.saveSecret({
      ...own(),
      name: "Key.Example.",
      algorithm,
      secret: "c2VjcmV0",
    });
    const taken = { ...own(), name: "key.example", algorithm, secret: "c2VjcmV0" };
    await expect(transfers.saveSecret(taken)).rejects.toMatchObject({ kind: "transfers.nameTaken" });
    const network = await transfers.saveNetwork({ ...own(), name: "n", network: "192.0.2.0/24" });
    const place = { address: "192.0.2.53", port: 53, isIncremental: true };
    const peer = await transfers.savePeer({ ...own(), name: "p", ...place, keyId: secret.id });
    const stranger = { ...own(), name: "q", ...place, keyId: newId() };
    await expect(transfers.savePeer(stranger)).rejects.toMatchObject({ kind: "transfers.unknownReference" });
    const given = { zoneId: zone.id, name: "g", peerIds: [peer.id], isEnabled: false, createdOn: 1 };
    await transfers.save(zone.accountId, given);
    expect(transfers.config().rules).toEqual([]);
    await transfers.save(zone.accountId, { ...given, isEnabled: true });

    const again = new OutgoingTransfers(storage);
    await again.load();
    expect(again.config()).toEqual(transfers.config());
    expect(again.config()).toMatchObject({
      keys: [{ id: secret.id, name: "\x03key\x07example\0", algorithm }],
      rules: [[zone.id, { networks: [network.network], peers: [{ id: peer.id, keyId: secret.id }] }]],
    });
    expect([again.find(zone.id), again.peers(zone.accountId)]).toEqual([
      { ...given, isEnabled: true },
      [peer],
    ]);
    expect(notified).toBe(5);

    await expect(transfers.deletePeer(peer)).rejects.toMatchObject({ kind: "transfers.inUse" });
    await zones.delete(zone);
    expect(again.find(zone.id)).toBe(undefined);
    await transfers.deletePeer(peer);
    await transfers.deleteSecret(secret);
    await transfers.deleteNetwork(network);
    expect(again.config()).toEqual({ keys: [], rules: [] });
  });
});
