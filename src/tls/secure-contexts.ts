import { createSecureContext, type SecureContext } from "node:tls";
import { LRUCache } from "lru-cache";
import type { LocalAuthority } from "./local-authority.ts";
import type { KeyPair } from "./x509.ts";

/** A certificate that may be served: the higher its rank, the sooner. */
export interface ServedCertificate extends KeyPair {
  hosts: readonly string[];
  rank: number;
  expiresOn: number;
}

const contextsMax = 10_000;
const localMs = 24 * 3_600_000;

/** What connections are secured with, found by the name that a visitor asks for. */
export class SecureContexts {
  readonly #authority: LocalAuthority;
  /** By the owner of the certificates: a zone, or the configuration. */
  readonly #owned = new Map<string, readonly ServedCertificate[]>();
  readonly #byName = new Map<string, ServedCertificate>();
  readonly #contexts = new WeakMap<ServedCertificate, SecureContext>();
  readonly #local = new LRUCache<string, SecureContext>({ max: contextsMax, ttl: localMs });
  readonly #isKnown: (host: string) => boolean;

  /** `isKnown` says whether a host is of a zone here: for others no certificate is made. */
  constructor(authority: LocalAuthority, isKnown: (host: string) => boolean) {
    this.#authority = authority;
    this.#isKnown = isKnown;
  }

  /** Replaces the certificates of one owner. */
  set(owner: string, certificates: readonly ServedCertificate[]): void {
    if (certificates.length === 0) this.#owned.delete(owner);
    else this.#owned.set(owner, certificates);
    this.#byName.clear();
    for (const certificate of [...this.#owned.values()].flat()) {
      for (const host of certificate.hosts) {
        const other = this.#byName.get(host);
        if (other === undefined || isBetter(certificate, other)) this.#byName.set(host, certificate);
      }
    }
  }

  /** The certificate for a host: of its own name, else of the wildcard that stands for it. */
  find(host: string): ServedCertificate | undefined {
    return this.#byName.get(host) ?? this.#byName.get(`*${host.slice(Math.max(host.indexOf("."), 0))}`);
  }

  contextFor(serverName: string): SecureContext {
    const host = serverName.toLowerCase().replace(/\.$/, "");
    const certificate = this.find(host);
    if (certificate === undefined || certificate.expiresOn <= Date.now()) return this.#localContext(host);
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

const contextOf = (pair: KeyPair): SecureContext =>
  createSecureContext({ cert: pair.certificate, key: pair.privateKey, minVersion: "TLSv1.2" });

const isBetter = (a: ServedCertificate, b: ServedCertificate): boolean =>
  a.rank === b.rank ? a.expiresOn > b.expiresOn : a.rank > b.rank;
