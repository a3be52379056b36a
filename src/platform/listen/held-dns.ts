import { closeSync } from "node:fs";
import type { BoundSocket } from "node:net";
import type { Config } from "../config/settings.ts";
import { loadDuplicate } from "./duplicate.ts";
import { descriptorOfUdp } from "./passed.ts";
import { bindDns, naming } from "./sockets.ts";

/** The sockets of the name server, which this process holds for others and does not read. */
export interface HeldDns extends Disposable {
  tcp: BoundSocket;
  udpDescriptor: number;
}

/**
 * Binds the sockets of the name server. Undefined if the name server binds its own, with threads or batches,
 * or if this system cannot hold a datagram socket without reading it.
 */
export async function holdDns({
  dnsListen,
  dnsThreads,
  dnsUdp,
}: Pick<Config, "dnsListen" | "dnsThreads" | "dnsUdp">): Promise<HeldDns | undefined> {
  if (dnsThreads > 0 || dnsUdp === "batched") return undefined;
  const duplicate = await loadDuplicate();
  if (duplicate === undefined) return undefined;
  const { tcp, udp } = await naming(dnsListen, "name server", bindDns);
  const descriptor = descriptorOfUdp(udp.address());
  const udpDescriptor = descriptor === undefined ? -1 : duplicate(descriptor);
  udp.close(); // Node reads every datagram socket that it has open
  if (udpDescriptor < 0) {
    tcp.close();
    return undefined;
  }
  return {
    tcp,
    udpDescriptor,
    [Symbol.dispose]() {
      tcp.close();
      closeSync(udpDescriptor);
    },
  };
}
