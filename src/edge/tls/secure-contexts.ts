import { createSecureContext, type SecureContext } from "node:tls";
import { LRUCache } from "lru-cache";
import type { LocalAuthority } from "./certificates/local-authority.ts";
import type { KeyPair } from "./certificates/x509.ts";
import { entriesMax } from "../../platform/util/loading-cache.ts";
import { clock } from "../../platform/timers/clock.ts";

/** A certificate that may be served; higher ranks are preferred. */
export interface ServedCertificate extends KeyPair {
  hosts: readonly string[];
  rank: number;
  expiresOn: number;
}

const contextsMax = 10_000;
const localMs = 24 * 3_600_000;

/** TLS contexts by server name. */
export class SecureContexts {
  readonly #authority: LocalAuthority;
  /** By owner: a zone, or the configuration. */
  readonly #owned = new Map<string, readonly ServedCertificate[]>();
  /** In order of preference. */
  readonly #byName = new Map<string, ServedCertificate[]>();
  readonly #contexts = new WeakMap<ServedCertificate, SecureContext>();
  readonly #local = new LRUCache<string, SecureContext>({ ...entriesMax(contextsMax), ttl: localMs });
  readonly #ownerOf = new WeakMap<ServedCertificate, string>();
  readonly #isKnown: (host: string) => boolean;
  readonly #mayServe: (owner: string, host: string) => boolean;

  /**
   * `isKnown` returns true for a host of a zone. The authority issues certificates only for these hosts.
   * `mayServe` returns true if certificates of an owner may be served for a host. The names inside a
   * certificate do not matter.
   */
  constructor(
    authority: LocalAuthority,
    isKnown: (host: string) => boolean,
    mayServe: (owner: string, host: string) => boolean = () => true,
  ) {
    this.#authority = authority;
    this.#isKnown = isKnown;
    this.#mayServe = mayServe;
  }

  /** All that have certificates. */
  owners(): string[] {
    return [...this.#owned.keys()];
  }

  /** Replaces the certificates of one owner. Each host is sorted once, because many certificates may share it. */
  set(owner: string, certificates: readonly ServedCertificate[]): void {
    const before = this.#owned.get(owner) ?? [];
    if (certificates.length === 0) this.#owned.delete(owner);
    else this.#owned.set(owner, certificates);
    for (const certificate of certificates) this.#ownerOf.set(certificate, owner);
    const [removed, added] = [new Set(before), byHost(certificates)];
    for (const host of new Set([...byHost(before).keys(), ...added.keys()])) {
      const others = (this.#byName.get(host) ?? []).filter((each) => !removed.has(each));
      const all = [...others, ...(added.get(host) ?? [])];
      if (all.length === 0) this.#byName.delete(host);
      else this.#byName.set(host, all.toSorted(byPreference));
    }
  }

  /** The unexpired certificate for a host: by exact name, otherwise by wildcard. */
  find(host: string): ServedCertificate | undefined {
    const nowMs = clock.now();
    const isValid = (each: ServedCertificate): boolean =>
      each.expiresOn > nowMs && this.#mayServe(this.#ownerOf.get(each)!, host);
    return (
      this.#byName.get(host)?.find(isValid) ??
      this.#byName.get(`*${host.slice(Math.max(host.indexOf("."), 0))}`)?.find(isValid)
    );
  }

  contextFor(serverName: string): SecureContext {
    const host = serverName.toLowerCase().replace(/\.$/, "");
    const certificate = this.find(host);
    if (certificate === undefined) return this.#localContext(host);
    let context = this.#contexts.get(certificate);
    if (context === undefined) this.#contexts.set(certificate, (context = contextOf(certificate)));
    return context;
  }

  #localContext(host: string): SecureContext {
    const name = this.#isKnown(host) ? host : "localhost";
    let context = this.#local.get(name);
    if (context === undefined) this.#local.set(name, (context = contextOf(this.#authority.issue([name]))));
    return context;
  }
}

/** The certificates of each host. */
function byHost(certificates: readonly ServedCertificate[]): Map<string, ServedCertificate[]> {
  const found = new Map<string, ServedCertificate[]>();
  for (const certificate of certificates)
    for (const host of new Set(certificate.hosts)) {
      const list = found.get(host);
      if (list === undefined) found.set(host, [certificate]);
      else list.push(certificate);
    }
  return found;
}

const contextOf = (pair: KeyPair): SecureContext =>
  createSecureContext({ cert: pair.certificate, key: pair.privateKey, minVersion: "TLSv1.2" });

const byPreference = (a: ServedCertificate, b: ServedCertificate): number =>
  b.rank - a.rank || b.expiresOn - a.expiresOn;
