import { expect, it, onTestFinished, vi } from "vitest";
import { describeStorage } from "../../../../test/helpers/storage-matrix.ts";
import { Accounts } from "../../../control/accounts/accounts.ts";
import { ensurePepper } from "../../../control/accounts/pepper.ts";
import { ensureOwner } from "../../../control/members/owner.ts";
import { loadConfig } from "../../../platform/config/config.ts";
import type { Storage } from "../../../platform/storage/storage.ts";
import { Tokens } from "../../../control/tokens/tokens.ts";
import { staticActivation } from "../../../control/zones/activation.ts";
import type { Zone } from "../../../control/zones/zone.ts";
import { Zones } from "../../../control/zones/zones.ts";
import { Renewal } from "../acme/renewal.ts";
import { Certificates } from "./certificates.ts";
import { CertificatePacks, type PackOrder } from "./packs.ts";
import { authorityCertificate, newKeys, serverCertificate, type KeyPair } from "./x509.ts";

const noZones = { find: () => undefined };

const order: PackOrder = {
  hosts: ["www.packs.example"],
  validationMethod: "txt",
  certificateAuthority: "lets_encrypt",
  validityDays: 90,
};
const { publicKey, privateKey: key } = newKeys();
const signer = { name: "an authority", key, publicKey };
const root = authorityCertificate(signer, 100);
function issue(hosts: readonly string[], days: number): KeyPair {
  const keys = newKeys();
  const certificate = serverCertificate(signer, keys.publicKey, hosts, days) + root;
  return { certificate, privateKey: keys.privateKey.export({ type: "pkcs8", format: "pem" }) };
}

async function platform(
  storage: Storage,
): Promise<{ packs: CertificatePacks; certificates: Certificates; zone: Zone }> {
  onTestFinished(() => storage.close());
  const accounts = new Accounts(storage);
  const { config } = loadConfig({ ephemeral: true }, {}, undefined);
  const tokens = new Tokens(storage, accounts, await ensurePepper(storage), noZones);
  const { account } = await ensureOwner(config, storage, accounts, tokens);
  const options = {
    nameServers: ["a", "b"],
    defaultPlan: "enterprise",
    activation: staticActivation,
  } as const;
  const zones = new Zones(storage, options);
  const zone = await zones.create({ accountId: account.id, name: "packs.example", type: "full" });
  const certificates = new Certificates(storage);
  return { packs: new CertificatePacks(storage, certificates, true), certificates, zone };
}

describeStorage("certificate packs", (open) => {
  it("are claimed by one node only, and by another after that one has died", async () => {
    const { packs, zone } = await platform(await open());
    for (let i = 0; i < 6; i++) await packs.order(zone, order);
    const now = Date.now();
    const claims = await Promise.all(Array.from({ length: 4 }, () => packs.claimDue(now, now + 60_000, 4)));
    const ids = claims.flat().map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    const rest = await packs.claimDue(now, now + 60_000, 10);
    expect(ids.length + rest.length).toBe(6);
    expect(await packs.claimDue(now, now + 60_000, 10)).toEqual([]);
    expect(await packs.claimDue(now + 60_000, now + 120_000, 10)).toHaveLength(6);
  });

  it("are issued as soon as the node knows their zone, which another node has created", async () => {
    const { packs, zone } = await platform(await open());
    const { id } = await packs.order(zone, order);
    let known: Zone | undefined;
    const renewal = new Renewal({
      authority: { issue: async (_zone, pack) => issue(pack.hosts, 89), forgetAccount: () => {} },
      packs,
      universal: { update: async () => {} },
      zoneOf: () => known,
      retrySeconds: 100,
      logger: { info: () => {}, warn: () => {} },
    });
    await renewal.tick();
    known = zone;
    await renewal.tick();
    await expect.poll(async () => (await packs.find(zone, id)).certificate).toBeDefined();
  });

  it("are issued, renewed after two thirds of their lifetime, and replaced then", async () => {
    const { packs, certificates, zone } = await platform(await open());
    const { id } = await packs.order(zone, order);
    const authority = {
      issue: vi.fn<(zone: Zone, pack: { hosts: string[] }) => Promise<KeyPair>>(async (_zone, pack) =>
        issue(pack.hosts, 89),
      ),
      forgetAccount: () => {},
    };
    const logger = { info: () => {}, warn: () => {} };
    const universal = { update: async () => {} };
    const zoneOf = (): Zone => zone;
    const renewal = new Renewal({ authority, packs, universal, zoneOf, retrySeconds: 100, logger });
    await renewal.tick();
    await expect.poll(async () => (await packs.find(zone, id)).certificate).toBeDefined();
    const first = (await packs.find(zone, id)).certificate!;
    const { nextOn } = await packs.find(zone, id);
    // The certificate has been valid for one of its 90 days.
    expect((nextOn - Date.now()) / 86_400_000).toBeGreaterThan(57);
    expect((nextOn - Date.now()) / 86_400_000).toBeLessThan(59.1);
    await renewal.tick();
    expect(authority.issue).toHaveBeenCalledTimes(1);
    await packs.restart(zone, id);
    await renewal.tick();
    await expect.poll(async () => (await packs.find(zone, id)).certificate?.id).not.toBe(first.id);
    expect(await certificates.list(zone.id)).toHaveLength(1);
    await packs.delete(zone, id);
    expect(await certificates.list(zone.id)).toEqual([]);
  });

  it("double the wait after each failure, and keep their certificate", async () => {
    const { packs, zone } = await platform(await open());
    const { id } = await packs.order(zone, order);
    const authority = {
      issue: async (): Promise<KeyPair> => {
        throw new Error("no such name");
      },
      forgetAccount: vi.fn<() => void>(),
    };
    const logger = { info: () => {}, warn: () => {} };
    const parts = { authority, packs, universal: { update: async () => {} }, zoneOf: () => zone, logger };
    const renewal = new Renewal({ ...parts, retrySeconds: 100 });
    const waits: number[] = [];
    for (let attempt = 1; attempt <= 4; attempt++) {
      await renewal.tick();
      await expect.poll(async () => (await packs.find(zone, id)).attempts).toBe(attempt);
      const failed = await packs.find(zone, id);
      expect(failed.error).toBe("no such name");
      waits.push((failed.nextOn - Date.now()) / 1000);
      await packs.release(failed, Date.now()); // makes it due
    }
    expect(authority.forgetAccount).toHaveBeenCalledTimes(4);
    for (const [index, wait] of waits.entries()) {
      expect(wait).toBeGreaterThan(100 * 2 ** index * 0.85);
      expect(wait).toBeLessThan(100 * 2 ** index * 1.15);
    }
    expect(await packs.countFailing()).toBe(1);
  });

  it("create one universal pack per zone, also concurrently", async () => {
    const { packs, zone } = await platform(await open());
    const hosts = ["packs.example", "*.packs.example"];
    await Promise.all(Array.from({ length: 4 }, () => packs.setUniversal(zone, hosts, "txt")));
    const [universal, ...more] = await packs.list(zone.id);
    expect(more).toEqual([]);
    expect(universal).toMatchObject({ type: "universal", hosts, validationMethod: "txt" });
    await packs.setUniversal(zone, ["www.packs.example"], "http");
    expect(await packs.list(zone.id)).toMatchObject([{ id: universal!.id, hosts: ["www.packs.example"] }]);
    await packs.setUniversal(zone, [], "http");
    expect(await packs.list(zone.id)).toEqual([]);
  });
});
