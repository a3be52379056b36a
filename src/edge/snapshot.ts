import type { RequestPredicate } from "../rulesets/expression.ts";
import type { Zone } from "../zones/zone.ts";

/** Where a proxied name leads: addresses, or other names. */
export interface OriginTarget {
  type: "A" | "AAAA" | "CNAME";
  content: string;
}

/** A name of a zone that has records. `targets` is what the origin is made from; DNS-only names have them too. */
export interface HostEntry {
  isProxied: boolean;
  targets: readonly OriginTarget[];
}

export interface OriginRule {
  matches: RequestPredicate;
  hostHeader?: string;
  host?: string;
  port?: number;
  /** The name that the origin's certificate is asked for by, instead of the Host header. */
  sni?: string;
}

/** What those who take a request may ask of its zone. */
export type ZoneFacts = Readonly<Pick<Zone, "accountId" | "plan" | "status" | "smartRouting">>;

/** What the edge knows of a zone. Everything is in memory: a request reads no database. */
export class EdgeZone {
  readonly id: string;
  readonly name: string;
  isPaused: boolean;
  /** Absent in a snapshot that is not made from storage. */
  facts: ZoneFacts | undefined;
  originRules: readonly OriginRule[] = [];
  readonly #hosts = new Map<string, HostEntry>();
  /** Names that exist only because something below them does (RFC 4592: they too end a wildcard). */
  readonly #ancestors = new Map<string, number>();

  constructor(id: string, name: string, isPaused: boolean) {
    this.id = id;
    this.name = name;
    this.isPaused = isPaused;
  }

  setHost(name: string, entry: HostEntry | undefined): void {
    const existed = this.#hosts.has(name);
    if (entry !== undefined) this.#hosts.set(name, entry);
    else this.#hosts.delete(name);
    const exists = entry !== undefined;
    if (existed !== exists) this.#countAncestors(name, exists ? 1 : -1);
  }

  /** The entry that answers for a name: its own, or that of the wildcard at the closest name that exists. */
  resolve(host: string): HostEntry | undefined {
    const exact = this.#hosts.get(host);
    if (exact !== undefined) return exact;
    if (this.#ancestors.has(host)) return undefined;
    for (let parent = parentOf(host); parent.length >= this.name.length; parent = parentOf(parent)) {
      if (parent === this.name || this.#hosts.has(parent) || this.#ancestors.has(parent)) {
        return this.#hosts.get(`*.${parent}`);
      }
    }
    return undefined;
  }

  #countAncestors(name: string, step: 1 | -1): void {
    for (let parent = parentOf(name); parent.length > this.name.length; parent = parentOf(parent)) {
      const count = (this.#ancestors.get(parent) ?? 0) + step;
      if (count === 0) this.#ancestors.delete(parent);
      else this.#ancestors.set(parent, count);
    }
  }
}

/** The zones that this node serves, found by host name. */
export class EdgeSnapshot {
  readonly #byName = new Map<string, EdgeZone>();
  readonly #byId = new Map<string, EdgeZone>();

  get(zoneId: string): EdgeZone | undefined {
    return this.#byId.get(zoneId);
  }

  add(zone: EdgeZone): void {
    this.#byName.set(zone.name, zone);
    this.#byId.set(zone.id, zone);
  }

  remove(zoneId: string): void {
    const zone = this.#byId.get(zoneId);
    if (zone === undefined) return;
    this.#byId.delete(zoneId);
    this.#byName.delete(zone.name);
  }

  /** The zone of a host: the longest of its suffixes that is one. The cost grows with the host's labels only. */
  findZone(host: string): EdgeZone | undefined {
    for (let name = host; name !== ""; name = parentOf(name)) {
      const zone = this.#byName.get(name);
      if (zone !== undefined) return zone;
    }
    return undefined;
  }
}

function parentOf(name: string): string {
  const dot = name.indexOf(".");
  return dot < 0 ? "" : name.slice(dot + 1);
}
