import type { DnsRecord } from "../dns/record.ts";
import type { RecordChange } from "../dns/record-changes.ts";
import type { DnsRecords } from "../dns/records.ts";
import { listAll } from "../dns/store.ts";
import type { Storage } from "../storage/storage.ts";
import { listDnsChallenges, type DnsChallenge } from "../tls/acme/store.ts";
import { Turns } from "../util/turns.ts";
import * as zoneStore from "../zones/store.ts";
import type { Zone } from "../zones/zone.ts";
import type { DnsSettings } from "./dns-settings.ts";
import type { NamedRecords, Update } from "./update.ts";
import type { ServedRecord, ZoneFacts, ZoneKey } from "./zone/facts.ts";

export interface FeedSources {
  storage: Storage;
  records: DnsRecords;
  /** What proxied names are answered with. */
  edgeAddresses: () => readonly string[];
  keyOf: (zoneId: string) => ZoneKey | undefined;
  settingsOf: (zoneId: string) => DnsSettings;
}

/** Resolves when what is told is what is answered. */
type Tell = (update: Update) => Promise<void>;

/** Follows storage, and tells the answering side what has changed: of a zone's records, the names that were touched. */
export class Feed {
  readonly #sources: FeedSources;
  readonly #tell: Tell;
  readonly #served = new Map<string, ZoneFacts>();
  /** Of the zones that have some. */
  readonly #challenges = new Map<string, readonly DnsChallenge[]>();
  readonly #readingChallenges = new Turns();

  constructor(sources: FeedSources, tell: Tell) {
    this.#sources = sources;
    this.#tell = tell;
    const { storage, records } = sources;
    records.changes.onChange((change) => this.#setNames(change));
    storage.onChange(async (changes) => {
      const challenges = changes.filter(({ kind }) => kind === "acme_challenge");
      for (const [zoneId, list] of Map.groupBy(challenges, ({ parentId }) => parentId!)) {
        await this.#readChallenges(zoneId);
        await records.changes.tellAgain(
          zoneId,
          list.map(({ id }) => id),
        );
      }
      for (const { kind, id } of changes) {
        if (kind !== "dnssec" && kind !== "dns_settings") continue;
        const zone = await zoneStore.find(storage.read, id);
        if (zone !== undefined) this.setZone(id, zone);
      }
    });
  }

  /** Loads the records of every zone that is served. */
  async load(): Promise<void> {
    const { read } = this.#sources.storage;
    const challenges = Map.groupBy(await listDnsChallenges(read), ({ zoneId }) => zoneId);
    for (const [zoneId, list] of challenges) this.#challenges.set(zoneId, list);
    const records = Map.groupBy(await listAll(read), ({ zoneId }) => zoneId);
    for (const zoneId of new Set([...records.keys(), ...challenges.keys()])) {
      const facts = this.#served.get(zoneId);
      if (facts === undefined) continue;
      const names = Map.groupBy(records.get(zoneId) ?? [], ({ name }) => name);
      for (const { name } of challenges.get(zoneId) ?? []) if (!names.has(name)) names.set(name, []);
      await this.#tell({ kind: "zone", facts, names: this.#named(zoneId, names) });
    }
  }

  /** Takes over a zone that was made or changed; its records, if it has any, are told of by themselves. */
  setZone(id: string, zone: Zone | undefined): void {
    const known = this.#served.get(id);
    // Of a partial zone the authority is elsewhere.
    if (zone === undefined || zone.type !== "full") {
      if (this.#served.delete(id)) void this.#tell({ kind: "zone_gone", id });
      return;
    }
    const facts = this.#factsOf(zone, Math.max(zone.serial, known?.serial ?? 0));
    if (known !== undefined && JSON.stringify(known) === JSON.stringify(facts)) return;
    this.#served.set(id, facts);
    void this.#tell({ kind: "zone", facts, ...(known === undefined ? { names: [] } : {}) });
  }

  async #setNames({ zoneId, names, serial }: RecordChange): Promise<void> {
    const known = this.#served.get(zoneId);
    if (known === undefined) return;
    const facts = { ...known, serial: Math.max(serial, known.serial) };
    this.#served.set(zoneId, facts);
    const told = { kind: "names", zoneId, serial: facts.serial, names: this.#named(zoneId, names) } as const;
    await this.#tell(told);
    if (serial > known.serial || names.size === 0) return;
    // Other nodes' changes may be told out of order, and a secondary may have taken the later serial without the
    // earlier change; and not every change has a serial. A new one makes it look again.
    await this.#sources.storage.write(async (trx, changed) => {
      const next = await zoneStore.noteRecordChange(trx, zoneId, 0);
      changed({ kind: "dns_serial", id: String(next.serial), parentId: zoneId });
    });
  }

  /** In turn, so that what was read first is not kept last. */
  async #readChallenges(zoneId: string): Promise<void> {
    await this.#readingChallenges.take(async () => {
      const found = await listDnsChallenges(this.#sources.storage.read, zoneId);
      if (found.length > 0) this.#challenges.set(zoneId, found);
      else this.#challenges.delete(zoneId);
    });
  }

  /** The records as they are answered, with what ACME authorities ask for. A CNAME there would lead them elsewhere. */
  #named(zoneId: string, names: RecordChange["names"]): NamedRecords {
    const challenges = this.#challenges.get(zoneId) ?? [];
    return [...names].map(([name, records]) => {
      const asked = challenges.filter((challenge) => challenge.name === name);
      const own = asked.length === 0 ? records : records.filter(({ type }) => type !== "CNAME");
      return [name, [...own.map(served), ...asked.map(challengeRecord)]];
    });
  }

  #factsOf(zone: Zone, serial: number): ZoneFacts {
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
