import { ByteWriter } from "../wire/byte-writer.ts";
import { types } from "../wire/constants.ts";
import { nameBytes, nameKey, parentOf, type NameKey } from "../wire/name.ts";
import type { ServedRecord, ServedZoneConfiguration } from "./configuration.ts";
import { ZoneNode, type Contents } from "./node.ts";
import type { RRset } from "./rrset.ts";
import type { RRsetSigner } from "./signer.ts";

/** How a name matches in a zone (RFC 4592 §3.3.1). */
export type Match =
  | { kind: "node"; node: ZoneNode }
  | { kind: "wildcard"; node: ZoneNode }
  /** An empty non-terminal: it exists only because a name below it does. */
  | { kind: "empty" }
  | { kind: "none" };

const empty: Match = { kind: "empty" };
const none: Match = { kind: "none" };

/** A zone in the memory of the name server. */
export class ServedZone {
  readonly key: NameKey;
  /** Signs with the zone's key; undefined if the zone is not signed. */
  signer: RRsetSigner | undefined;
  /** Incremented by changes of the whole zone. */
  version = 0;
  #configuration: ServedZoneConfiguration;
  // Computed at the first use after a change.
  #apex: ReadonlyMap<number, RRset> | undefined;
  #negativeSoa: RRset | undefined;
  readonly #nodes = new Map<NameKey, ZoneNode>();
  readonly #ancestors = new Map<NameKey, number>();
  readonly #cuts = new Set<NameKey>();

  constructor(configuration: ServedZoneConfiguration, signer: RRsetSigner | undefined) {
    this.key = nameKey(configuration.name);
    this.#configuration = configuration;
    this.signer = signer;
    this.#nodes.set(this.key, new ZoneNode(this.key, []));
  }

  get configuration(): ServedZoneConfiguration {
    return this.#configuration;
  }

  /** The SOA of negative answers. Its TTL tells caches how long to keep them (RFC 2308 §3). */
  get negativeSoa(): RRset {
    return (this.#negativeSoa ??= soaSet(this.#configuration, negativeTtl(this.#configuration)));
  }

  setConfiguration(configuration: ServedZoneConfiguration, signer: RRsetSigner | undefined): void {
    this.version++;
    this.#configuration = configuration;
    this.signer = signer;
    for (const node of this.#nodes.values()) node.forget();
    this.#forgetApex();
  }

  setSerial(serial: number): void {
    this.#configuration = { ...this.#configuration, serial };
    this.#nodes.get(this.key)?.forget();
    this.#forgetApex();
  }

  setRecords(name: string, records: readonly ServedRecord[]): void {
    const key = nameKey(name);
    const existed = this.#nodes.has(key);
    const exists = records.length > 0 || key === this.key;
    if (exists) this.#nodes.set(key, new ZoneNode(key, records));
    else this.#nodes.delete(key);
    if (existed !== exists) this.#countAncestors(key, exists ? 1 : -1);
    const isCut = key !== this.key && !key.startsWith("\x01*") && records.some(({ type }) => type === "NS");
    if (isCut) this.#cuts.add(key);
    else this.#cuts.delete(key);
  }

  node(key: NameKey): ZoneNode | undefined {
    return this.#nodes.get(key);
  }

  nodes(): Iterable<ZoneNode> {
    return this.#nodes.values();
  }

  contents(node: ZoneNode): Contents {
    if (node.key !== this.key) return node.contents(this.#configuration, undefined);
    this.#apex ??= apexSets(this.#configuration, this.signer);
    return node.contents(this.#configuration, this.#apex);
  }

  /** The delegation at or above a name that is nearest to the apex, because names below it are not ours. */
  cutAbove(key: NameKey): ZoneNode | undefined {
    if (this.#cuts.size === 0) return undefined;
    let found: NameKey | undefined;
    for (let name = key; name.length > this.key.length; name = parentOf(name)) {
      if (this.#cuts.has(name)) found = name;
    }
    return found === undefined ? undefined : this.#nodes.get(found);
  }

  match(key: NameKey): Match {
    const node = this.#nodes.get(key);
    if (node !== undefined) return { kind: "node", node };
    if (this.#ancestors.has(key)) return empty;
    for (let name = parentOf(key); name.length >= this.key.length; name = parentOf(name)) {
      if (!this.#nodes.has(name) && !this.#ancestors.has(name)) continue;
      const wildcard = this.#nodes.get(`\x01*${name}`);
      return wildcard === undefined ? none : { kind: "wildcard", node: wildcard };
    }
    return none;
  }

  #forgetApex(): void {
    this.#apex = undefined;
    this.#negativeSoa = undefined;
  }

  #countAncestors(key: NameKey, step: 1 | -1): void {
    for (let name = parentOf(key); name.length > this.key.length; name = parentOf(name)) {
      const count = (this.#ancestors.get(name) ?? 0) + step;
      if (count === 0) this.#ancestors.delete(name);
      else this.#ancestors.set(name, count);
    }
  }
}

/** The sets that the platform provides at the apex: SOA, name servers and keys. */
function apexSets(
  configuration: ServedZoneConfiguration,
  signer: RRsetSigner | undefined,
): ReadonlyMap<number, RRset> {
  const sets: RRset[] = [
    soaSet(configuration, configuration.settings.soa.ttl),
    {
      type: types.NS,
      ttl: configuration.settings.ns_ttl,
      rdatas: configuration.nameServers.map((name) => nameBytes(nameKey(name))),
    },
    ...(signer?.apexSets() ?? []),
  ];
  return new Map(sets.map((set) => [set.type, set]));
}

/** The TTL of negative answers (RFC 2308 §5). */
const negativeTtl = ({ settings }: ServedZoneConfiguration): number =>
  Math.min(settings.soa.ttl, settings.soa.min_ttl);

function soaSet(configuration: ServedZoneConfiguration, ttl: number): RRset {
  const { serial, settings } = configuration;
  const { soa } = settings;
  const rdata = new ByteWriter()
    .latin1(nameKey(soa.mname ?? configuration.nameServers[0] ?? configuration.name))
    .latin1(nameKey(soa.rname ?? `dns.${configuration.name}`))
    .uint32(serial)
    .uint32(soa.refresh)
    .uint32(soa.retry)
    .uint32(soa.expire)
    .uint32(soa.min_ttl)
    .done();
  return { type: types.SOA, ttl, rdatas: [rdata] };
}
