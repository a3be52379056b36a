import { isIPv4 } from "node:net";
import { proxiableTypes } from "../../records/record.ts";
import { ByteWriter } from "../wire/byte-writer.ts";
import { addressBytes } from "../wire/address.ts";
import { types } from "../wire/constants.ts";
import { nameKey, type NameKey } from "../wire/name.ts";
import { serviceParameterBytes } from "../wire/service-parameters.ts";
import type { DnsAnswer } from "./answer.ts";
import type { ServedRecord, ServedZoneConfiguration } from "./configuration.ts";
import { effectiveTtl, rrsetOf, type RRset } from "./rrset.ts";

/** The target of a CNAME. */
export interface CnameTarget {
  target: string;
  targetKey: NameKey;
  ttl: number;
}

/** The answers of a name, by type. */
export interface Contents {
  sets: ReadonlyMap<number, RRset>;
  /** The CNAME, if it is answered as a CNAME. */
  alias: (RRset & CnameTarget) | undefined;
  /** The target whose addresses replace the CNAME. */
  flattened: CnameTarget | undefined;
}

/** A name of a zone with its records. A change replaces the node, and with it all answers cached here. */
export class ZoneNode {
  readonly key: NameKey;
  readonly records: readonly ServedRecord[];
  readonly answers = new Map<number, DnsAnswer>();
  #contents: Contents | undefined;

  constructor(key: NameKey, records: readonly ServedRecord[]) {
    this.key = key;
    this.records = records;
  }

  get hasNameServers(): boolean {
    return this.records.some(({ type }) => type === "NS");
  }

  /** Encoded at the first query, so that large zones cost little until they are queried. */
  contents(configuration: ServedZoneConfiguration, apex: ReadonlyMap<number, RRset> | undefined): Contents {
    return (this.#contents ??= contentsOf(this.records, configuration, apex));
  }

  /** Drops cached contents after a change of the zone's configuration. */
  forget(): void {
    this.#contents = undefined;
    this.answers.clear();
  }
}

/** TTL in seconds of the edge's addresses. */
const edgeTtl = 300;

function contentsOf(
  records: readonly ServedRecord[],
  configuration: ServedZoneConfiguration,
  apex: ReadonlyMap<number, RRset> | undefined,
): Contents {
  const isAtEdge = configuration.isProxying && records.some(({ proxied }) => proxied);
  const isHidden = (type: string): boolean =>
    type === "CNAME" ||
    (isAtEdge && proxiableTypes.has(type)) ||
    (apex !== undefined && isOfPlatform(type, configuration));
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
  if (isAtEdge) addEdge(sets, records, configuration);

  const cname = isAtEdge ? undefined : records.find(({ type }) => type === "CNAME");
  if (cname === undefined) return { sets, alias: undefined, flattened: undefined };
  // A CNAME at the apex or beside other types must be answered with addresses, because DNS allows a CNAME only
  // alone (RFC 1034 §3.6.2).
  const isFlattened =
    apex !== undefined ||
    configuration.settings.flatten_all_cnames ||
    cname.settings.flatten_cname === true ||
    records.some(stopsCname);
  const target = { target: cname.content, targetKey: nameKey(cname.content), ttl: effectiveTtl(cname.ttl) };
  return isFlattened
    ? { sets, alias: undefined, flattened: target }
    : { sets, alias: { ...rrsetOf([cname]), ...target }, flattened: undefined };
}

/**
 * The apex has the platform's name servers and keys instead of the zone's own records, unless the zone is
 * shared with other providers.
 */
const isOfPlatform = (type: string, { dnssec, settings }: ServedZoneConfiguration): boolean =>
  (type === "NS" && !settings.multi_provider) ||
  (type === "DNSKEY" && dnssec !== undefined && !dnssec.isMultiSigner);

const stopsCname = ({ type }: ServedRecord): boolean =>
  type !== "CNAME" && type !== "DS" && type !== "DNSKEY";

/**
 * Replaces the origin's addresses with the edge's, and adds an HTTPS record with them unless the zone has
 * one.
 */
function addEdge(
  sets: Map<number, RRset>,
  records: readonly ServedRecord[],
  configuration: ServedZoneConfiguration,
): void {
  const asks = (setting: "ipv4_only" | "ipv6_only"): boolean =>
    records.some(({ proxied, settings }) => proxied && settings[setting] === true);
  const v4 = asks("ipv6_only") ? [] : configuration.edgeAddresses.filter((address) => isIPv4(address));
  const v6 = asks("ipv4_only") ? [] : configuration.edgeAddresses.filter((address) => !isIPv4(address));
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
