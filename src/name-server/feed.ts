import * as records from "../dns/store.ts";
import type { DnsRecord } from "../dns/record.ts";
import type { Storage } from "../storage/storage.ts";
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

/** Follows storage, and tells the answering side what has changed: of a zone's records, the names that were touched. */
export class Feed {
  readonly #sources: FeedSources;
  readonly #tell: (update: Update) => void;
  readonly #served = new Map<string, ZoneFacts>();

  constructor(sources: FeedSources, tell: (update: Update) => void) {
    this.#sources = sources;
    this.#tell = tell;
    sources.storage.onChange(async (changes) => {
      const touched = changes.filter(
        ({ kind, parentId }) =>
          (kind === "dns_record" || kind === "acme_challenge") && parentId !== undefined,
      );
      for (const [zoneId, list] of Map.groupBy(touched, ({ parentId }) => parentId!)) {
        await this.#renewNames(zoneId, new Set(list.map(({ id }) => id)));
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
      if (facts !== undefined) this.#tell({ kind: "zone", facts, names: byName(ofZone) });
    }
    const challenges = await listDnsChallenges(read);
    for (const [zoneId, list] of Map.groupBy(challenges, (challenge) => challenge.zoneId))
      await this.#renewNames(zoneId, new Set(list.map(({ name }) => name)));
  }

  /** Takes over a zone that was made or changed; its records, if it has any, are told of by themselves. */
  setZone(id: string, zone: Zone | undefined): void {
    const known = this.#served.get(id);
    // Of a partial zone the authority is elsewhere.
    if (zone === undefined || zone.type !== "full") {
      if (this.#served.delete(id)) this.#tell({ kind: "zone_gone", id });
      return;
    }
    const facts = this.#factsOf(zone, Math.max(zone.serial, known?.serial ?? 0));
    if (known !== undefined && JSON.stringify(known) === JSON.stringify(facts)) return;
    this.#served.set(id, facts);
    this.#tell({ kind: "zone", facts, ...(known === undefined ? { names: [] } : {}) });
  }

  async #renewNames(zoneId: string, names: ReadonlySet<string>): Promise<void> {
    if (!this.#served.has(zoneId)) return;
    const { read } = this.#sources.storage;
    // The serial before the records: what is newer than the serial is told again under the next one.
    const serial = (await zoneStore.find(read, zoneId))?.serial;
    const challenges = await listDnsChallenges(read, { zoneId, names: [...names] });
    const found = withChallenges(
      byName(await records.listInvolved(read, zoneId, [], [...names])),
      challenges,
    );
    const known = this.#served.get(zoneId);
    if (serial === undefined || known === undefined) return; // deleted meanwhile
    const present = new Set(found.map(([name]) => name));
    const gone = [...names].filter((name) => !present.has(name)).map((name) => [name, []] as const);
    const facts = { ...known, serial: Math.max(serial, known.serial) };
    this.#served.set(zoneId, facts);
    this.#tell({ kind: "names", zoneId, serial: facts.serial, names: [...found, ...gone] });
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
