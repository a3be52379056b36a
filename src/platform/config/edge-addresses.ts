import { isIP } from "node:net";
import { networkInterfaces } from "node:os";
import { parseAddress } from "./config.ts";
import type { Config } from "./settings.ts";

/** The addresses of the edge: as configured, otherwise the listening ones. */
export function edgeAddressesOf(config: Config): readonly string[] {
  if (config.edgeAddresses.length > 0) return config.edgeAddresses;
  const { host } = parseAddress(config.edgeListen)!;
  if (host === "localhost") return ["127.0.0.1"];
  if (isIP(host) !== 0 && host !== "0.0.0.0" && host !== "::") return [host];
  return Object.values(networkInterfaces())
    .flatMap((list) => list ?? [])
    .filter(({ internal, address }) => !internal && !address.startsWith("fe80:"))
    .filter(({ family }) => host === "::" || family === "IPv4")
    .map(({ address }) => address);
}
