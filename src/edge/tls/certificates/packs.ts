import { lockZone } from "../../../platform/storage/dialects.ts";
import type { Storage } from "../../../platform/storage/storage.ts";
import { newId } from "../../../platform/util/ids.ts";
import type { Zone } from "../../../control/zones/zone.ts";
import type { Certificate, Certificates } from "./certificates.ts";
import * as store from "./store-packs.ts";
import type { KeyPair } from "./x509.ts";
import { packErrors, packsMax } from "./errors.ts";
import { clock } from "../../../platform/timers/clock.ts";

export const certificateAuthorities = ["google", "lets_encrypt", "ssl_com"] as const;
export const validityDays = [14, 30, 90, 365] as const;

/** Hosts for which an ACME authority issues and renews one certificate. */
export interface CertificatePack {
  id: string;
  zoneId: string;
  /** `universal`: created for each zone; `advanced`: ordered by a user. */
  type: "universal" | "advanced";
  hosts: string[];
  validationMethod: "txt" | "http";
  certificateAuthority: (typeof certificateAuthorities)[number];
  validityDays: (typeof validityDays)[number];
  /** Failures since the last success. */
  attempts: number;
  /** Time of the next issue in epoch milliseconds. */
  nextOn: number;
  /** The error of the last attempt. */
  error: string | null;
  createdOn: number;
}

export type PackOrder = Pick<
  CertificatePack,
  "hosts" | "validationMethod" | "certificateAuthority" | "validityDays"
>;
export type PackWithCertificate = CertificatePack & { certificate: Certificate | undefined };

export const packHostsMax = 50;

/** The certificate packs of zones: their hosts, schedule and last result. */
export class CertificatePacks {
  readonly #storage: Storage;
  readonly #certificates: Certificates;
  /** Whether the installation has an ACME authority. */
  readonly hasAuthority: boolean;

  constructor(storage: Storage, certificates: Certificates, hasAuthority: boolean) {
    this.#storage = storage;
    this.#certificates = certificates;
    this.hasAuthority = hasAuthority;
  }

  async list(zoneId: string): Promise<PackWithCertificate[]> {
    const packs = await store.listOfZone(this.#storage.read, zoneId);
    const certificates = packs.length === 0 ? [] : await this.#certificates.list(zoneId);
    return packs.map((pack) => ({
      ...pack,
      certificate: certificates.find(({ packId }) => packId === pack.id),
    }));
  }

  async find(zone: Zone, id: string): Promise<PackWithCertificate> {
    const pack = (await this.list(zone.id)).find((each) => each.id === id);
    if (pack === undefined) throw packErrors.notFound(id);
    return pack;
  }

  async order(zone: Zone, order: PackOrder): Promise<PackWithCertificate> {
    if (!this.hasAuthority) throw packErrors.noAuthority();
    const hosts = order.hosts.map((host, index) => checkHost(zone, host, index, order.validationMethod));
    checkMethod(zone, order.validationMethod);
    const pack = newPack(zone, "advanced", { ...order, hosts: [...new Set(hosts)] });
    await this.#storage.write(async (trx, changed) => {
      await lockZone(this.#storage, trx, zone.id);
      const others = await store.listOfZone(trx, zone.id);
      if (others.filter(({ type }) => type === "advanced").length >= packsMax) throw packErrors.tooMany();
      await store.insert(trx, pack);
      changed({ kind: "certificate_pack", id: pack.id, parentId: zone.id });
    });
    return { ...pack, certificate: undefined };
  }

  /** Issues a pack at once. */
  async restart(zone: Zone, id: string): Promise<PackWithCertificate> {
    const { certificate, ...pack } = await this.find(zone, id);
    if (!this.hasAuthority) throw packErrors.noAuthority();
    const due: CertificatePack = { ...pack, attempts: 0, error: null, nextOn: clock.now() };
    await this.#update(due);
    return { ...due, certificate };
  }

  /** Changes the validation method and issues the pack at once. */
  async setMethod(zone: Zone, id: string, method: "txt" | "http"): Promise<PackWithCertificate> {
    const pack = await this.find(zone, id);
    if (pack.type === "universal") throw packErrors.universalMethod();
    checkMethod(zone, method);
    pack.hosts.forEach((host, index) => checkHost(zone, host, index, method));
    await this.#update({ ...pack, validationMethod: method });
    return this.restart(zone, id);
  }

  async delete(zone: Zone, id: string): Promise<void> {
    const { type } = await this.find(zone, id);
    if (type === "universal") throw packErrors.universal();
    await this.#remove(zone.id, id);
  }

  /** Sets the hosts of the zone's universal pack; without hosts the pack is removed. */
  async setUniversal(zone: Zone, hosts: readonly string[], method: "txt" | "http"): Promise<void> {
    const known = (await store.listOfZone(this.#storage.read, zone.id)).find(
      ({ type }) => type === "universal",
    );
    if (hosts.length === 0) {
      if (known !== undefined) await this.#remove(zone.id, known.id);
      return;
    }
    if (known?.validationMethod === method && known.hosts.join() === hosts.join()) return;
    if (known !== undefined) {
      const change = { hosts: [...hosts], validationMethod: method, attempts: 0, nextOn: clock.now() };
      return this.#update({ ...known, ...change });
    }
    const pack = newPack(zone, "universal", {
      hosts: [...hosts],
      validationMethod: method,
      certificateAuthority: "lets_encrypt",
      validityDays: 90,
    });
    await this.#storage.write(async (trx, changed) => {
      await lockZone(this.#storage, trx, zone.id);
      const others = await store.listOfZone(trx, zone.id);
      if (others.some(({ type }) => type === "universal")) return; // another node was faster
      await store.insert(trx, pack);
      changed({ kind: "certificate_pack", id: pack.id, parentId: zone.id });
    });
  }

  /** Number of packs whose last attempt failed. */
  async countFailing(): Promise<number> {
    return store.countFailing(this.#storage.read);
  }

  async proxiedNames(zone: Zone): Promise<string[]> {
    return store.proxiedNames(this.#storage.read, zone.id, packHostsMax);
  }

  /** Claims due packs until `untilMs`, so that no other node takes them. */
  async claimDue(nowMs: number, untilMs: number, limit: number): Promise<CertificatePack[]> {
    const { read } = this.#storage;
    const claimed: CertificatePack[] = [];
    for (const pack of await store.listDue(read, nowMs, limit)) {
      if (await store.claim(read, pack, untilMs)) claimed.push({ ...pack, nextOn: untilMs });
    }
    return claimed;
  }

  /** Releases a claimed pack. */
  async release(pack: CertificatePack, nextOn: number): Promise<void> {
    await store.claim(this.#storage.read, pack, nextOn);
  }

  async issued(zone: Zone, pack: CertificatePack, pair: KeyPair, renewOn: number): Promise<void> {
    await this.#storage.write(async (trx, changed) => {
      await lockZone(this.#storage, trx, zone.id);
      const current = await store.find(trx, pack.id);
      if (current === undefined) return; // deleted in the meantime
      await this.#certificates.replaceIssued(trx, zone, pack.id, pair);
      // A concurrent change of the hosts has set its own time for the next issue.
      const nextOn = current.nextOn === pack.nextOn ? renewOn : current.nextOn;
      await store.update(trx, { ...current, attempts: 0, error: null, nextOn });
      changed({ kind: "certificate", id: zone.id, parentId: zone.id });
    });
  }

  async failed(pack: CertificatePack, error: string, retryOn: number): Promise<void> {
    await this.#storage.write(async (trx) => {
      const current = await store.find(trx, pack.id);
      if (current === undefined) return;
      const nextOn = current.nextOn === pack.nextOn ? retryOn : current.nextOn;
      await store.update(trx, { ...current, attempts: current.attempts + 1, error, nextOn });
    });
  }

  async #update(pack: CertificatePack): Promise<void> {
    await this.#storage.write(async (trx, changed) => {
      await store.update(trx, pack);
      changed({ kind: "certificate_pack", id: pack.id, parentId: pack.zoneId });
    });
  }

  async #remove(zoneId: string, id: string): Promise<void> {
    await this.#storage.write(async (trx, changed) => {
      await store.remove(trx, id);
      changed({ kind: "certificate_pack", id, parentId: zoneId });
      changed({ kind: "certificate", id: zoneId, parentId: zoneId });
    });
  }
}

function newPack(zone: Zone, type: CertificatePack["type"], order: PackOrder): CertificatePack {
  const now = clock.now();
  return {
    id: newId(),
    zoneId: zone.id,
    type,
    ...order,
    attempts: 0,
    nextOn: now,
    error: null,
    createdOn: now,
  };
}

function checkMethod(zone: Zone, method: "txt" | "http"): void {
  if (method === "txt" && zone.type !== "full")
    throw packErrors.method("the name servers of a partial zone are elsewhere");
}

/** The canonical form of a host. Throws when the zone cannot have a certificate for it. */
function checkHost(zone: Zone, input: string, index: number, method: "txt" | "http"): string {
  const host = input.trim().toLowerCase().replace(/\.$/, "");
  const refuse = (why: string): never => {
    throw packErrors.host(index, input, why);
  };
  const isWildcard = host.startsWith("*.");
  const plain = isWildcard ? host.slice(2) : host;
  if (plain !== zone.name && !plain.endsWith(`.${zone.name}`)) refuse(`it is not in ${zone.name}`);
  if (!/^(?!-)[a-z0-9_-]{1,63}(?<!-)(\.(?!-)[a-z0-9_-]{1,63}(?<!-))+$/.test(plain))
    refuse("it is not a host name");
  if (isWildcard && method === "http") refuse("a wildcard can only be validated by txt");
  return host;
}
