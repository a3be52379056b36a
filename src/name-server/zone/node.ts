import { isIPv4 } from "node:net";
import { ByteWriter } from "../wire/byte-writer.ts";
import { addressBytes } from "../wire/address.ts";
import { types } from "../wire/constants.ts";
import { nameKey, type NameKey } from "../wire/name.ts";
import { serviceParameterBytes } from "../wire/service-parameters.ts";
import type { Answer } from "./answer.ts";
import type { ServedRecord, ZoneFacts } from "./facts.ts";
import { effectiveTtl, rrsetOf, type RRset } from "./rrset.ts";

/** Where a CNAME leads. */
export interface Target {
  target: string;
  targetKey: NameKey;
  ttl: number;
}

/** What a name is answered with, by type. */
export interface Contents {
  sets: ReadonlyMap<number, RRset>;
  /** The CNAME, where it is answered as one. */
  alias: (RRset & Target) | undefined;
  /** Where the addresses come from that stand in the CNAME's place. */
  flattened: Target | undefined;
}

/** A name of a zone with its records. A change makes a new node, and with it goes every answer that was kept here. */
export class Node {
  readonly key: NameKey;
  readonly records: readonly ServedRecord[];
  readonly answers = new Map<number, Answer>();
  #contents: Contents | undefined;

  constructor(key: NameKey, records: readonly ServedRecord[]) {
    this.key = key;
    this.records = records;
  }

  get hasNameServers(): boolean {
    return this.records.some(({ type }) => type === "NS");
  }

  /** In wire form from the first question on, so that a large zone costs nothing until it is asked. */
  contents(facts: ZoneFacts, apex: ReadonlyMap<number, RRset> | undefined): Contents {
    return (this.#contents ??= contentsOf(this.records, facts, apex));
  }

  /** The zone's own part has changed. */
  forget(): void {
    this.#contents = undefined;
    this.answers.clear();
  }
}

/** Seconds for addresses of the edge. */
const edgeTtl = 300;
const replacedByEdge: ReadonlySet<string> = new Set(["A", "AAAA", "CNAME"]);

function contentsOf(
  records: readonly ServedRecord[],
  facts: ZoneFacts,
  apex: ReadonlyMap<number, RRset> | undefined,
): Contents {
  const isAtEdge = facts.isProxying && records.some(({ proxied }) => proxied);
  const isHidden = (type: string): boolean =>
    type === "CNAME" ||
    (isAtEdge && replacedByEdge.has(type)) ||
    (apex !== undefined && isOfPlatform(type, facts));
  const shown = records.filter(({ type }) => !isHidden(type));
  const sets = new Map<number, RRset>();
  for (const group of Map.groupBy(shown, ({ type }) => type).values()) {
    const set = rrsetOf(group);
    sets.set(set.type, set);
  }
  for (const [type, set] of apex ?? []) {
    const own = sets.get(type);
    sets.set(type, own === undefined ? set : { ...set, rdatas: [...set.rdatas, ...own.rdatas] });
  }
  if (isAtEdge) addEdge(sets, records, facts);

  const cname = isAtEdge ? undefined : records.find(({ type }) => type === "CNAME");
  if (cname === undefined) return { sets, alias: undefined, flattened: undefined };
  // Beside other types a CNAME can only be seen as addresses.
  const isFlattened =
    apex !== undefined ||
    facts.settings.flatten_all_cnames ||
    cname.settings.flatten_cname === true ||
    records.some(stopsCname);
  const target = { target: cname.content, targetKey: nameKey(cname.content), ttl: effectiveTtl(cname.ttl) };
  return isFlattened
    ? { sets, alias: undefined, flattened: target }
    : { sets, alias: { ...rrsetOf([cname]), ...target }, flattened: undefined };
}

/** At the apex the platform's own name servers stand, and its keys, unless the zone is shared with others. */
const isOfPlatform = (type: string, { dnssec, settings }: ZoneFacts): boolean =>
  (type === "NS" && !settings.multi_provider) ||
  (type === "DNSKEY" && dnssec !== undefined && !dnssec.isMultiSigner);

const stopsCname = ({ type }: ServedRecord): boolean =>
  type !== "CNAME" && type !== "DS" && type !== "DNSKEY";

/** The edge's addresses in place of the origin's, and an HTTPS record that says so, unless the user has one. */
function addEdge(sets: Map<number, RRset>, records: readonly ServedRecord[], facts: ZoneFacts): void {
  const asks = (setting: "ipv4_only" | "ipv6_only"): boolean =>
    records.some(({ proxied, settings }) => proxied && settings[setting] === true);
  const v4 = asks("ipv6_only") ? [] : facts.edgeAddresses.filter((address) => isIPv4(address));
  const v6 = asks("ipv4_only") ? [] : facts.edgeAddresses.filter((address) => !isIPv4(address));
  for (const [type, addresses] of [
    [types.A, v4],
    [types.AAAA, v6],
  ] as const) {
    if (addresses.length > 0) sets.set(type, { type, ttl: edgeTtl, rdatas: addresses.map(addressBytes) });
  }
  if (sets.has(types.HTTPS)) return;
  const hints = [
    'alpn="h2"',
    v4.length > 0 ? `ipv4hint="${v4.join(",")}"` : "",
    v6.length > 0 ? `ipv6hint="${v6.join(",")}"` : "",
  ];
  const rdata = new ByteWriter()
    .uint16(1)
    .uint8(0)
    .bytes(serviceParameterBytes(hints.join(" ").trim()));
  sets.set(types.HTTPS, { type: types.HTTPS, ttl: edgeTtl, rdatas: [rdata.done()] });
}
