import { isIPv6, type AddressInfo } from "node:net";
import { parseAddress } from "./config/config.ts";

/** A literal address of the configuration. */
export function addressInfoOf(text: string): AddressInfo {
  const { host, port } = parseAddress(text)!;
  return { address: host, port, family: isIPv6(host) ? "IPv6" : "IPv4" };
}

/** The address of one of this node's listeners, which is known once it listens. */
export class OwnListener {
  #address: AddressInfo | undefined;
  readonly #listeners: ((address: AddressInfo) => void)[] = [];

  /** Undefined before it listens, and for a listener that is not configured. */
  get address(): AddressInfo | undefined {
    return this.#address;
  }

  /** `ADDRESS:PORT`, as in URLs. Throws before it listens. */
  get authority(): string {
    const { address, port } = this.#address!;
    return address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;
  }

  /** Calls back as soon as the listener listens, before it answers a request. */
  onListening(listener: (address: AddressInfo) => void): void {
    this.#listeners.push(listener);
  }

  listensAt(address: AddressInfo): void {
    this.#address = address;
    for (const listener of this.#listeners) listener(address);
  }
}
