import { ByteWriter } from "../wire/byte-writer.ts";
import { types } from "../wire/constants.ts";
import { nameBytes, nameKey, parentOf, type NameKey } from "../wire/name.ts";
import type { ServedRecord, ZoneFacts } from "./facts.ts";
import { Node, type Contents } from "./node.ts";
import type { RRset } from "./rrset.ts";
import type { Signer } from "./signer.ts";

/** What a name is in a zone (RFC 4592 §3.3.1). */
export type Match =
  | { kind: "node"; node: Node }
  | { kind: "wildcard"; node: Node }
  /** It exists only because something below it does. */
  | { kind: "empty" }
  | { kind: "none" };

const empty: Match = { kind: "empty" };
const none: Match = { kind: "none" };

/** A zone as it is answered. */
export class ServedZone {
  readonly key: NameKey;
  /** The keeper of the zone's key, when it is signed. */
  signer: Signer | undefined;
  /** Counts what has changed the zone as a whole. */
  version = 0;
  #facts: ZoneFacts;
  // Made when they are first asked for after a change.
  #apex: ReadonlyMap<number, RRset> | undefined;
  #negativeSoa: RRset | undefined;
  readonly #nodes = new Map<NameKey, Node>();
  readonly #ancestors = new Map<NameKey, number>();
  readonly #cuts = new Set<NameKey>();

  constructor(facts: ZoneFacts, signer: Signer | undefined) {
    this.key = nameKey(facts.name);
    this.#facts = facts;
    this.signer = signer;
    this.#nodes.set(this.key, new Node(this.key, []));
  }

  get facts(): ZoneFacts {
    return this.#facts;
  }

  /** The SOA of negative answers; its TTL is how long they are to be kept (RFC 2308 §3). */
  get negativeSoa(): RRset {
    return (this.#negativeSoa ??= soaSet(this.#facts, negativeTtl(this.#facts)));
  }

  setFacts(facts: ZoneFacts, signer: Signer | undefined): void {
    this.version++;
    this.#facts = facts;
    this.signer = signer;
    for (const node of this.#nodes.values()) node.forget();
    this.#forgetApex();
  }

  setSerial(serial: number): void {
    this.#facts = { ...this.#facts, serial };
    this.#nodes.get(this.key)?.forget();
    this.#forgetApex();
  }

  setRecords(name: string, records: readonly ServedRecord[]): void {
    const key = nameKey(name);
    const existed = this.#nodes.has(key);
    const exists = records.length > 0 || key === this.key;
    if (exists) this.#nodes.set(key, new Node(key, records));
    else this.#nodes.delete(key);
    if (existed !== exists) this.#countAncestors(key, exists ? 1 : -1);
    const isCut = key !== this.key && !key.startsWith("\x01*") && records.some(({ type }) => type === "NS");
    if (isCut) this.#cuts.add(key);
    else this.#cuts.delete(key);
  }

  node(key: NameKey): Node | undefined {
    return this.#nodes.get(key);
  }

  nodes(): Iterable<Node> {
    return this.#nodes.values();
  }

  contents(node: Node): Contents {
    if (node.key !== this.key) return node.contents(this.#facts, undefined);
    this.#apex ??= apexSets(this.#facts, this.signer);
    return node.contents(this.#facts, this.#apex);
  }

  /** The delegation that a name is at or below: the one nearest to the apex, as what is below it is not ours. */
  cutAbove(key: NameKey): Node | undefined {
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

/** What the zone itself has at its apex: SOA, name servers, and its keys. */
function apexSets(facts: ZoneFacts, signer: Signer | undefined): ReadonlyMap<number, RRset> {
  const sets: RRset[] = [
    soaSet(facts, facts.settings.soa.ttl),
    {
      type: types.NS,
      ttl: facts.settings.ns_ttl,
      rdatas: facts.nameServers.map((name) => nameBytes(nameKey(name))),
    },
    ...(signer?.apexSets() ?? []),
  ];
  return new Map(sets.map((set) => [set.type, set]));
}

/** RFC 2308 §5. */
const negativeTtl = ({ settings }: ZoneFacts): number => Math.min(settings.soa.ttl, settings.soa.min_ttl);

function soaSet(facts: ZoneFacts, ttl: number): RRset {
  const { serial, settings } = facts;
  const { soa } = settings;
  const rdata = new ByteWriter()
    .latin1(nameKey(soa.mname ?? facts.nameServers[0] ?? facts.name))
    .latin1(nameKey(soa.rname ?? `dns.${facts.name}`))
    .uint32(serial)
    .uint32(soa.refresh)
    .uint32(soa.retry)
    .uint32(soa.expire)
    .uint32(soa.min_ttl)
    .done();
  return { type: types.SOA, ttl, rdatas: [rdata] };
}
