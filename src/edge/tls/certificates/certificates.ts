import { lockZone } from "../../../platform/storage/dialects.ts";
import type { Storage, Write } from "../../../platform/storage/storage.ts";
import { newId } from "../../../platform/util/ids.ts";
import type { Zone } from "../../../control/zones/zone.ts";
import { certificateErrors } from "./errors.ts";
import { checkPair } from "./certificate.ts";
import * as store from "./store.ts";
import type { KeyPair } from "./x509.ts";
import { clock } from "../../../platform/timers/clock.ts";

export const bundleMethods = ["ubiquitous", "optimal", "force"] as const;
export const certificateTypes = ["sni_custom", "legacy_custom"] as const;

export interface Certificate extends KeyPair {
  id: string;
  zoneId: string;
  /** The pack for which an ACME authority issued it; null for an uploaded certificate. */
  packId: string | null;
  type: (typeof certificateTypes)[number];
  bundleMethod: (typeof bundleMethods)[number];
  priority: number;
  hosts: string[];
  issuer: string;
  signature: string;
  expiresOn: number;
  uploadedOn: number;
  modifiedOn: number;
}

type Options = Pick<Certificate, "type" | "bundleMethod">;
const certificatesMax = 100;

/** The certificates of zones: uploaded by users, or issued by an ACME authority. */
export class Certificates {
  readonly #storage: Storage;

  constructor(storage: Storage) {
    this.#storage = storage;
  }

  async loadAll(): Promise<Certificate[]> {
    return store.loadAll(this.#storage.read);
  }

  /** Expiry times of all zones' certificates. */
  async expiries(): Promise<store.Expiry[]> {
    return store.listExpiries(this.#storage.read);
  }

  async list(zoneId: string): Promise<Certificate[]> {
    return store.listOfZone(this.#storage.read, zoneId);
  }

  async listCustom(zoneId: string): Promise<Certificate[]> {
    return (await this.list(zoneId)).filter((each) => each.packId === null);
  }

  async find(zone: Zone, id: string): Promise<Certificate> {
    const certificate = await store.find(this.#storage.read, id);
    if (certificate?.zoneId !== zone.id || certificate.packId !== null) throw certificateErrors.notFound(id);
    return certificate;
  }

  async create(zone: Zone, pair: KeyPair, options: Options): Promise<Certificate> {
    const now = clock.now();
    const { hosts, issuer, signature, expiresOn } = checkPair(pair, zone.name, now);
    const details = { hosts, issuer, signature, expiresOn };
    return this.#storage.write(async (trx, changed) => {
      await lockZone(this.#storage, trx, zone.id);
      const others = (await store.listOfZone(trx, zone.id)).filter((each) => each.packId === null);
      if (others.length >= certificatesMax) throw certificateErrors.tooMany(certificatesMax);
      const certificate: Certificate = {
        id: newId(),
        zoneId: zone.id,
        packId: null,
        ...pair,
        ...options,
        ...details,
        priority: Math.max(0, ...others.map((each) => each.priority)) + 1,
        uploadedOn: now,
        modifiedOn: now,
      };
      await store.insert(trx, certificate);
      changed({ kind: "certificate", id: zone.id, parentId: zone.id });
      return certificate;
    });
  }

  /**
   * Replaces the pair or its bundle method. A changed certificate of type sni_custom gets a new id, as in the
   * public API.
   */
  async edit(
    zone: Zone,
    id: string,
    change: { pair?: Partial<KeyPair>; bundleMethod?: Certificate["bundleMethod"] },
  ): Promise<Certificate> {
    return this.#storage.write(async (trx, changed) => {
      await lockZone(this.#storage, trx, zone.id);
      const before = await store.find(trx, id);
      if (before?.zoneId !== zone.id || before.packId !== null) throw certificateErrors.notFound(id);
      const now = clock.now();
      const { certificate, privateKey } = { ...before, ...change.pair };
      const { hosts, issuer, signature, expiresOn } = checkPair({ certificate, privateKey }, zone.name, now);
      const after: Certificate = {
        ...before,
        certificate,
        privateKey,
        hosts,
        issuer,
        signature,
        expiresOn,
        bundleMethod: change.bundleMethod ?? before.bundleMethod,
        modifiedOn: now,
      };
      if (before.type === "sni_custom") {
        after.id = newId();
        await store.remove(trx, [before.id]);
        await store.insert(trx, after);
      } else {
        await store.update(trx, after);
      }
      changed({ kind: "certificate", id: zone.id, parentId: zone.id });
      return after;
    });
  }

  async prioritize(zone: Zone, order: readonly { id: string; priority: number }[]): Promise<Certificate[]> {
    await this.#storage.write(async (trx, changed) => {
      await lockZone(this.#storage, trx, zone.id);
      for (const { id, priority } of order) {
        const certificate = await store.find(trx, id);
        if (certificate?.zoneId !== zone.id || certificate.packId !== null)
          throw certificateErrors.notFound(id);
        await store.update(trx, { ...certificate, priority, modifiedOn: clock.now() });
      }
      changed({ kind: "certificate", id: zone.id, parentId: zone.id });
    });
    return this.listCustom(zone.id);
  }

  async delete(zone: Zone, id: string): Promise<void> {
    await this.find(zone, id);
    await this.#storage.write(async (trx, changed) => {
      await store.remove(trx, [id]);
      changed({ kind: "certificate", id: zone.id, parentId: zone.id });
    });
  }

  /** Stores an issued certificate in place of the previous one of its pack. */
  async replaceIssued(trx: Write, zone: Zone, packId: string, pair: KeyPair): Promise<Certificate> {
    const now = clock.now();
    const { hosts, issuer, signature, expiresOn } = checkPair(pair, zone.name, now);
    const certificate: Certificate = {
      id: newId(),
      zoneId: zone.id,
      packId,
      type: "sni_custom",
      bundleMethod: "force",
      priority: 0,
      ...pair,
      hosts,
      issuer,
      signature,
      expiresOn,
      uploadedOn: now,
      modifiedOn: now,
    };
    const old = (await store.listOfZone(trx, zone.id)).filter((each) => each.packId === packId);
    await store.remove(
      trx,
      old.map((each) => each.id),
    );
    await store.insert(trx, certificate);
    return certificate;
  }
}
