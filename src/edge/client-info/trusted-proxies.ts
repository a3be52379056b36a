import type { IncomingMessage } from "node:http";
import { BlockList, isIP } from "node:net";
import { ConfigError } from "../../platform/config/config.ts";

/** Proxies in front of the edge that are trusted to report the client's address. */
export class TrustedProxies {
  readonly #list = new BlockList();
  readonly #isEmpty: boolean;

  /** Addresses and networks: `192.0.2.1`, `10.0.0.0/8`, `2001:db8::/32`. */
  constructor(networks: readonly string[]) {
    this.#isEmpty = networks.length === 0;
    for (const network of networks) {
      const [address = "", length] = network.split("/");
      const family = familyOf(address);
      const bits = length === undefined ? undefined : /^\d{1,3}$/.test(length) ? Number(length) : NaN;
      if (family === undefined || (bits !== undefined && !(bits <= (family === "ipv4" ? 32 : 128)))) {
        throw new ConfigError(
          `Expected addresses or networks, such as 10.0.0.0/8, for --trusted-proxies but received "${network}"`,
        );
      }
      if (bits === undefined) this.#list.addAddress(address, family);
      else this.#list.addSubnet(address, bits, family);
    }
  }

  trusts(address: string): boolean {
    if (this.#isEmpty) return false;
    const family = familyOf(address);
    return family !== undefined && this.#list.check(address, family);
  }

  /**
   * The client's address. For a request from a trusted proxy, the last address in `x-forwarded-for` that is
   * not a trusted proxy; otherwise the peer's address.
   */
  clientAddress(request: IncomingMessage, peer: string): string {
    if (!this.trusts(peer)) return peer;
    const header = request.headers["x-forwarded-for"];
    const hops = (Array.isArray(header) ? header.join(",") : (header ?? ""))
      .split(",")
      .map((hop) => hop.trim());
    let client = peer;
    for (const hop of hops.toReversed()) {
      if (isIP(hop) === 0) break;
      client = hop;
      if (!this.trusts(hop)) break;
    }
    return client;
  }
}

function familyOf(address: string): "ipv4" | "ipv6" | undefined {
  const family = isIP(address);
  return family === 0 ? undefined : family === 4 ? "ipv4" : "ipv6";
}
