import * as records from "../dns/store.ts";
import type { DnsRecord } from "../dns/record.ts";
import type { Change, Storage } from "../storage/storage.ts";
import { listDnsChallenges } from "../tls/acme/store.ts";
import * as zoneStore from "../zones/store.ts";
import type { Zone } from "../zones/zone.ts";
import type { NamedRecords, Update } from "./update.ts";
import type { DnsSettings } from "./dns-settings.ts";
import type { ServedRecord, ZoneFacts, ZoneKey } from "./zone/facts.ts";

export interface FeedSources {
  storage: Storage;
  /** What proxied names are answered with. */
  edgeAddresses: () => readonly string[];
  keyOf: (zoneId: string) => ZoneKey | undefined;
  settingsOf: (zoneId: string) => DnsSettings;
}

/** Resolves when what is told is what is answered. */
type Tell = (update: Update) => Promise<void>;

/** Kinds of changes that tell of names of a zone, or of the serial that they gave it. */
const aboutNames: ReadonlySet<Change["kind"]> = new Set(["dns_record", "acme_challenge", "dns_serial"]);

/** Follows storage, and tells the answering side what has changed: of a zone's records, the names that were touched. */
export class Feed {
  readonly #sources: FeedSources;
  readonly #tell: Tell;
  readonly #served = new Map<string, ZoneFacts>();
  /** Zones that have had challenges: of others nobody need ask for them at each change. */
  readonly #challenged = new Set<string>();

  constructor(sources: FeedSources, tell: Tell) {
    this.#sources = sources;
    this.#tell = tell;
    sources.storage.onChange(async (changes) => {
      const told = changes.filter(({ kind, parentId }) => aboutNames.has(kind) && parentId !== undefined);
      for (const [zoneId, list] of Map.groupBy(told, ({ parentId }) => parentId!)) {
        if (list.some(({ kind }) => kind === "acme_challenge")) this.#challenged.add(zoneId);
        const [serials, touched] = partition(list, ({ kind }) => kind === "dns_serial");
        const serial = Math.max(0, ...serials.map(({ id }) => Number(id)));
        await this.#renewNames(zoneId, new Set(touched.map(({ id }) => id)), serial);
      }
      for (const { kind, id } of changes) {
        if (kind !== "dnssec" && kind !== "dns_settings") continue;
        const zone = await zoneStore.find(sources.storage.read, id);
        if (zone !== undefined) this.setZone(id, zone);
      }
    });
  }

  /** Loads the records of every zone that is served. */
  async load(): Promise<void> {
    const { read } = this.#sources.storage;
    const all = await records.listAll(read);
    for (const [zoneId, ofZone] of Map.groupBy(all, (record) => record.zoneId)) {
      const facts = this.#served.get(zoneId);
      if (facts !== undefined) await this.#tell({ kind: "zone", facts, names: byName(ofZone) });
    }
    const challenges = await listDnsChallenges(read);
    for (const [zoneId, list] of Map.groupBy(challenges, (challenge) => challenge.zoneId)) {
      this.#challenged.add(zoneId);
      await this.#tellNames(zoneId, new Set(list.map(({ name }) => name)), 0);
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

  async #renewNames(zoneId: string, names: ReadonlySet<string>, serial: number): Promise<void> {
    const known = this.#served.get(zoneId);
    if (known === undefined) return;
    await this.#tellNames(zoneId, names, serial);
    if (serial > known.serial || names.size === 0) return;
    // Changes that were made at once may be told out of order, and a secondary may have taken the later serial without
    // the earlier change; and not every change has a serial. A new one makes it look again.
    await this.#sources.storage.write(async (trx, changed) => {
      const next = await zoneStore.noteRecordChange(trx, zoneId, 0);
      changed({ kind: "dns_serial", id: String(next.serial), parentId: zoneId });
    });
  }

  async #tellNames(zoneId: string, names: ReadonlySet<string>, serial: number): Promise<void> {
    const { read } = this.#sources.storage;
    const challenges = this.#challenged.has(zoneId)
      ? await listDnsChallenges(read, { zoneId, names: [...names] })
      : [];
    // Records that are newer than the serial are told again under their own.
    const found = withChallenges(
      byName(await records.listInvolved(read, zoneId, [], [...names])),
      challenges,
    );
    const known = this.#served.get(zoneId);
    if (known === undefined) return; // deleted meanwhile
    const present = new Set(found.map(([name]) => name));
    const gone = [...names].filter((name) => !present.has(name)).map((name) => [name, []] as const);
    const facts = { ...known, serial: Math.max(serial, known.serial) };
    this.#served.set(zoneId, facts);
    await this.#tell({ kind: "names", zoneId, serial: facts.serial, names: [...found, ...gone] });
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

const byName = (list: readonly DnsRecord[]): NamedRecords =>
  [...Map.groupBy(list, ({ name }) => name)].map(([name, group]) => [name, group.map(served)] as const);

/** With what ACME authorities ask for. A CNAME there would lead them elsewhere. */
function withChallenges(
  found: NamedRecords,
  challenges: readonly { name: string; value: string }[],
): NamedRecords {
  const all = new Map(found);
  for (const { name, value } of challenges) {
    const others = (all.get(name) ?? []).filter(({ type }) => type !== "CNAME");
    all.set(name, [...others, { ...challengeRecord, content: `"${value}"` }]);
  }
  return [...all];
}

const challengeRecord = {
  type: "TXT",
  data: null,
  priority: null,
  ttl: 60,
  proxied: false,
  settings: {},
} as const;

const served = ({ type, content, data, priority, ttl, proxied, settings }: DnsRecord): ServedRecord => ({
  type,
  content,
  data,
  priority,
  ttl,
  proxied,
  settings,
});

function partition<T>(list: readonly T[], belongs: (item: T) => boolean): [T[], T[]] {
  return [list.filter(belongs), list.filter((item) => !belongs(item))];
}
