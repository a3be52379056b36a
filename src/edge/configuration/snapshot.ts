import type { RequestPredicate } from "../../control/rulesets/expression.ts";
import { Precedence, type Standing } from "../../control/zones/precedence.ts";
import type { Zone } from "../../control/zones/zone.ts";
import type { ProxiableType } from "../../dns/records/record.ts";

/** A target of a proxied name: an address or another name. */
export interface OriginTarget {
  type: ProxiableType;
  content: string;
}

/** A name of a zone that has records. `targets` are the origin; DNS-only names have them too. */
export interface HostEntry {
  isProxied: boolean;
  targets: readonly OriginTarget[];
}

/** A rule of the phase `http_request_origin`, compiled for the edge. Absent properties are not overridden. */
export interface OriginRule {
  matches: RequestPredicate;
  hostHeader?: string;
  host?: string;
  port?: number;
  /** The server name for the origin's certificate, instead of the Host header. */
  sni?: string;
}

/** The configuration of a zone that handlers use. */
export type EdgeZoneConfiguration = Readonly<Pick<Zone, "accountId" | "plan" | "status" | "smartRouting">>;

/** A zone in the snapshot. Everything is in memory, so a request needs no database. */
export class EdgeZone {
  readonly id: string;
  readonly name: string;
  isPaused: boolean;
  /** Undefined in snapshots that were not loaded from storage. */
  configuration: EdgeZoneConfiguration | undefined;
  #originRules: readonly OriginRule[] = [];
  /** Whether any rule reads bodies. Set with the rules, so that requests need not check each rule. */
  readsBody = false;
  #hosts = new Map<string, HostEntry>();
  /** Names that exist only because a name below them does (RFC 4592: they end a wildcard too). */
  #ancestors = new Map<string, number>();

  constructor(id: string, name: string, isPaused: boolean) {
    this.id = id;
    this.name = name;
    this.isPaused = isPaused;
  }

  get originRules(): readonly OriginRule[] {
    return this.#originRules;
  }

  set originRules(rules: readonly OriginRule[]) {
    this.#originRules = rules;
    this.readsBody = rules.some(({ matches }) => matches.readsBody === true);
  }

  /** Replaces all names. */
  setHosts(hosts: ReadonlyMap<string, HostEntry>): void {
    this.#hosts = new Map();
    this.#ancestors = new Map();
    for (const [name, entry] of hosts) this.setHost(name, entry);
  }

  setHost(name: string, entry: HostEntry | undefined): void {
    const existed = this.#hosts.has(name);
    if (entry !== undefined) this.#hosts.set(name, entry);
    else this.#hosts.delete(name);
    const exists = entry !== undefined;
    if (existed !== exists) this.#countAncestors(name, exists ? 1 : -1);
  }

  /** The entry of a name: its own, or that of the wildcard at the closest existing name. */
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

/** The zones that this node serves, by host name. */
export class EdgeSnapshot {
  readonly #byName = new Map<string, EdgeZone>();
  readonly #byId = new Map<string, EdgeZone>();
  readonly #precedence = new Precedence();
  readonly #platformNames: ReadonlySet<string>;

  /**
   * Only active zones may serve `platformNames`, the names of the installation itself, and names below them.
   */
  constructor(platformNames: readonly string[] = []) {
    this.#platformNames = new Set(platformNames);
  }

  get(zoneId: string): EdgeZone | undefined {
    return this.#byId.get(zoneId);
  }

  zones(): Iterable<EdgeZone> {
    return this.#byId.values();
  }

  add(zone: EdgeZone): void {
    this.#byName.set(zone.name, zone);
    this.#byId.set(zone.id, zone);
  }

  /** Sets the precedence between zones of several accounts; without it, the longer name wins. */
  setStanding(standing: Standing): void {
    this.#precedence.set(standing);
  }

  remove(zoneId: string): void {
    const zone = this.#byId.get(zoneId);
    if (zone === undefined) return;
    this.#byId.delete(zoneId);
    this.#precedence.delete(zoneId);
    // Another zone may have taken the name.
    if (this.#byName.get(zone.name) === zone) this.#byName.delete(zone.name);
  }

  /**
   * The zone of a host: the one with the longest matching suffix, unless it yields to a zone of another
   * account. The cost depends only on the number of labels.
   */
  findZone(host: string): EdgeZone | undefined {
    let isOfPlatform = false;
    for (let name = host; name !== ""; name = parentOf(name)) {
      isOfPlatform ||= this.#platformNames.has(name);
      const longest = this.#byName.get(name);
      if (longest === undefined) continue;
      const governor = this.#precedence.governorOf(longest.id);
      const zone = governor === longest.id ? longest : this.#byId.get(governor);
      return isOfPlatform && zone?.configuration?.status !== "active" ? undefined : zone;
    }
    return undefined;
  }
}

function parentOf(name: string): string {
  const dot = name.indexOf(".");
  return dot < 0 ? "" : name.slice(dot + 1);
}
