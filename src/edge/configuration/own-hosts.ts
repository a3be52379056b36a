import type { AddressInfo } from "node:net";
import type { EdgeSnapshot, OriginTarget } from "./snapshot.ts";

/** The listening address of this edge for one scheme. */
export interface EdgeAddress {
  address: string;
  port: number;
  isTls: boolean;
}

/** A host that this installation knows: served by its own edge, or with the targets of its records. */
export type OwnHost = { listener: EdgeAddress } | { targets: readonly OriginTarget[] };

/**
 * Finds hosts that this installation serves, in memory: those with a proxied record in an active zone, and
 * the hosts of scripts. Only active zones count, because anyone can create a zone with any name.
 */
export class OwnHosts {
  readonly #snapshot: EdgeSnapshot;
  readonly #scriptSuffix: string;
  readonly #listeners: { http?: EdgeAddress; https?: EdgeAddress } = {};

  constructor(snapshot: EdgeSnapshot, workersDomain: string) {
    this.#snapshot = snapshot;
    this.#scriptSuffix = `.${workersDomain.toLowerCase()}`;
  }

  listens(scheme: "http" | "https", { address, port }: AddressInfo): void {
    const anywhere: Record<string, string> = { "0.0.0.0": "127.0.0.1", "::": "::1" };
    this.#listeners[scheme] = { address: anywhere[address] ?? address, port, isTls: scheme === "https" };
  }

  /** Undefined for other hosts, and for ports other than the default one and the edge's. */
  find(host: string, port: number, isTls: boolean): OwnHost | undefined {
    const name = host.endsWith(".") ? host.slice(0, -1) : host;
    const zone = this.#snapshot.findZone(name);
    const entry = zone?.configuration?.status === "active" ? zone.resolve(name) : undefined;
    if (entry?.isProxied === false && entry.targets.length > 0) return { targets: entry.targets };
    if (entry?.isProxied !== true && !name.endsWith(this.#scriptSuffix)) return undefined;
    const { http, https } = this.#listeners;
    // Without a TLS listener, a proxy in front of this edge terminates TLS.
    const listener = isTls ? (https ?? http) : http;
    if (listener === undefined || (port !== (isTls ? 443 : 80) && port !== listener.port)) return undefined;
    return { listener };
  }
}
