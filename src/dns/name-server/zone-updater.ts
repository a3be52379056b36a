import type { DnsRecord } from "../records/record.ts";
import type { RecordChange } from "../records/record-changes.ts";
import type { DnsRecords } from "../records/records.ts";
import { rereadRecords } from "../records/reread.ts";
import { listAll } from "../records/store.ts";
import type { RestoredRows } from "../../platform/storage/changes/listeners.ts";
import type { Storage } from "../../platform/storage/storage.ts";
import { Turns } from "../../platform/util/turns.ts";
import { standingOf } from "../../control/zones/precedence.ts";
import * as zoneStore from "../../control/zones/store.ts";
import type { Zone } from "../../control/zones/zone.ts";
import type { DnsSettings } from "../settings/dns-settings.ts";
import type { NamedRecords, Update } from "./update.ts";
import type { ServedRecord, ServedZoneConfiguration, ZoneKey } from "./zone/configuration.ts";
import type { DnsChallenge } from "../challenges/store.ts";
import { unawaited } from "../../platform/util/uncaught.ts";

export interface ZoneSources {
  storage: Storage;
  records: DnsRecords;
  /** The addresses for proxied names. */
  edgeAddresses: () => readonly string[];
  keyOf: (zoneId: string) => ZoneKey | undefined;
  settingsOf: (zoneId: string) => DnsSettings;
  /** Open ACME challenges: all of them, or those of one zone. */
  listChallenges: (zoneId?: string) => Promise<DnsChallenge[]>;
}

/** Resolves once queries see the update. */
type Send = (update: Update) => Promise<void>;

/**
 * Watches storage and sends updates to the name server's threads. For changed records, an update has only the
 * affected names.
 */
export class ZoneUpdater {
  readonly #sources: ZoneSources;
  readonly #send: Send;
  readonly #served = new Map<string, ServedZoneConfiguration>();
  /** ACME challenges by zone id, for zones that have some. */
  #challenges = new Map<string, readonly DnsChallenge[]>();
  readonly #readingChallenges = new Turns();

  constructor(sources: ZoneSources, send: Send) {
    this.#sources = sources;
    this.#send = send;
    const { storage, records } = sources;
    records.changes.onChange((change) => this.#setNames(change));
    storage.onChange(
      async (changes) => {
        const challenges = changes.filter(({ kind }) => kind === "acme_challenge");
        for (const [zoneId, list] of Map.groupBy(challenges, ({ parentId }) => parentId!)) {
          await this.#readChallenges(zoneId);
          await records.changes.notifyAgain(
            zoneId,
            list.map(({ id }) => id),
          );
        }
        for (const { kind, id } of changes) {
          if (kind !== "dnssec" && kind !== "dns_settings") continue;
          const zone = await zoneStore.find(storage.read, id);
          if (zone !== undefined) this.setZone(id, zone);
        }
      },
      async (restored) => (restored === undefined ? this.#read("all") : this.#readRestored(restored)),
    );
  }

  /** Loads the records of every served zone and sends them. */
  async load(): Promise<void> {
    await (
      await this.#read("with names")
    )();
  }

  async #read(sent: "all" | "with names", goesBack = false): Promise<() => Promise<void>> {
    const { read } = this.#sources.storage;
    const zones = await zoneStore.loadAll(read);
    const challenges = Map.groupBy(await this.#sources.listChallenges(), ({ zoneId }) => zoneId);
    const records = Map.groupBy(await listAll(read), ({ zoneId }) => zoneId);
    return async () => {
      this.#challenges = new Map(challenges);
      // Their settings and keys may have changed.
      for (const zone of zones) this.setZone(zone.id, zone, goesBack);
      const updates = [...this.#served].map(async ([zoneId, configuration]) => {
        const names = Map.groupBy(records.get(zoneId) ?? [], ({ name }) => name);
        for (const { name } of challenges.get(zoneId) ?? []) if (!names.has(name)) names.set(name, []);
        if (names.size === 0 && sent === "with names") return;
        await this.#send({ kind: "zone", configuration, names: this.#named(zoneId, names) });
      });
      await Promise.all(updates);
    };
  }

  /**
   * Reads again what follows from the rows that the test kit has replaced. Serials go back too. There are no ACME
   * challenges, which a platform under test refuses.
   */
  async #readRestored(restored: RestoredRows): Promise<() => Promise<void>> {
    const { read } = this.#sources.storage;
    const reread = await rereadRecords(read, restored, (zoneId) => this.#served.has(zoneId));
    if (reread === undefined) return this.#read("all", true);
    const zones = await zoneStore.loadAll(read);
    return async () => {
      for (const zone of zones) this.setZone(zone.id, zone, true);
      const updates = reread.map(async ({ zoneId, isWhole, names }) => {
        const configuration = this.#served.get(zoneId);
        if (configuration === undefined) return;
        const { serial } = configuration;
        const named = this.#named(zoneId, names);
        if (!isWhole) await this.#send({ kind: "names", zoneId, serial, names: named });
        // Also ends the history of changes for secondaries.
        await this.#send({ kind: "zone", configuration, ...(isWhole ? { names: named } : {}) });
      });
      await Promise.all(updates);
    };
  }

  /**
   * Sends an update for a zone that was created, changed or deleted (undefined). Its records have their own
   * updates. `goesBack` permits an earlier serial.
   */
  setZone(id: string, zone: Zone | undefined, goesBack = false): void {
    const known = this.#served.get(id);
    // A partial zone has its authoritative servers elsewhere.
    if (zone === undefined || zone.type !== "full") {
      if (this.#served.delete(id)) unawaited(this.#send({ kind: "zone_gone", id }));
      return;
    }
    const serial = goesBack ? zone.serial : Math.max(zone.serial, known?.serial ?? 0);
    const configuration = this.#configurationOf(zone, serial);
    if (known !== undefined && JSON.stringify(known) === JSON.stringify(configuration)) return;
    this.#served.set(id, configuration);
    unawaited(this.#send({ kind: "zone", configuration, ...(known === undefined ? { names: [] } : {}) }));
  }

  async #setNames({ zoneId, names, serial }: RecordChange): Promise<void> {
    const known = this.#served.get(zoneId);
    if (known === undefined) return;
    const configuration = { ...known, serial: Math.max(serial, known.serial) };
    this.#served.set(zoneId, configuration);
    const update = {
      kind: "names",
      zoneId,
      serial: configuration.serial,
      names: this.#named(zoneId, names),
    } as const;
    await this.#send(update);
    if (serial > known.serial || names.size === 0) return;
    // Notices of other nodes may arrive out of order, so a secondary may have fetched the later serial
    // without the earlier change. Some changes also have no serial. A new serial makes secondaries transfer
    // again.
    await this.#sources.storage.write(async (trx, changed) => {
      const next = await zoneStore.noteRecordChange(trx, zoneId, 0);
      changed({ kind: "dns_serial", id: String(next.serial), parentId: zoneId });
    });
  }

  /** Reads one at a time, so that an older result never replaces a newer one. */
  async #readChallenges(zoneId: string): Promise<void> {
    await this.#readingChallenges.take(async () => {
      const found = await this.#sources.listChallenges(zoneId);
      if (found.length > 0) this.#challenges.set(zoneId, found);
      else this.#challenges.delete(zoneId);
    });
  }

  /**
   * The records to serve, including TXT records for ACME challenges. A CNAME at such a name is left out,
   * because it would redirect the ACME server.
   */
  #named(zoneId: string, names: RecordChange["names"]): NamedRecords {
    const challenges = this.#challenges.get(zoneId) ?? [];
    return [...names].map(([name, records]) => {
      const asked = challenges.filter((challenge) => challenge.name === name);
      const own = asked.length === 0 ? records : records.filter(({ type }) => type !== "CNAME");
      return [name, [...own.map(served), ...asked.map(challengeRecord)]];
    });
  }

  #configurationOf(zone: Zone, serial: number): ServedZoneConfiguration {
    return {
      id: zone.id,
      accountId: zone.accountId,
      name: zone.name,
      nameServers: zone.vanityNameServers.length > 0 ? zone.vanityNameServers : zone.nameServers,
      settings: this.#sources.settingsOf(zone.id),
      serial,
      isProxying: zone.status === "active" && !zone.paused,
      edgeAddresses: this.#sources.edgeAddresses(),
      dnssec: this.#sources.keyOf(zone.id),
      standing: standingOf(zone),
    };
  }
}

const challengeRecord = ({ value }: DnsChallenge): ServedRecord => ({
  type: "TXT",
  content: `"${value}"`,
  data: null,
  priority: null,
  ttl: 60,
  proxied: false,
  settings: {},
});

const served = ({ type, content, data, priority, ttl, proxied, settings }: DnsRecord): ServedRecord => ({
  type,
  content,
  data,
  priority,
  ttl,
  proxied,
  settings,
});
