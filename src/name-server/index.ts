import { isIP, type AddressInfo } from "node:net";
import { networkInterfaces } from "node:os";
import type { Logger } from "pino";
import { parseAddress } from "../config/config.ts";
import type { Config } from "../config/settings.ts";
import type { Services } from "../services.ts";
import type { Storage } from "../storage/storage.ts";
import { Authority } from "./authority.ts";
import { Feed } from "./feed.ts";
import { TcpListener } from "./tcp.ts";
import { UdpListener } from "./udp.ts";

export interface NameServer {
  listen(host: string, port: number): Promise<AddressInfo>;
  close(): Promise<void>;
}

/** Fills the name server's memory from storage, keeps it current, and puts the listeners on it. */
export async function startNameServer(
  config: Config,
  services: Services,
  storage: Storage,
  logger: Logger,
  /** 16 bytes, the same on all nodes of the installation. */
  installationCookieSecret: Buffer,
): Promise<NameServer> {
  const { dnsCookieSecret } = config;
  const cookieSecret =
    dnsCookieSecret === undefined ? installationCookieSecret : Buffer.from(dnsCookieSecret, "hex");
  if (cookieSecret.length !== 16)
    throw new Error("Expected 32 hexadecimal digits for dns-cookie-secret but received something else");
  const authority = new Authority(
    {
      responseRateLimit: config.dnsResponseRateLimit,
      cookieSecret: cookieSecret.toString("base64"),
      identity: config.colo.toLowerCase(),
    },
    () => {
      throw new Error("no signer");
    },
    () => {},
    logger,
  );
  const edgeAddresses = edgeAddressesOf(config);
  const feed = new Feed({ storage, edgeAddresses: () => edgeAddresses, keyOf: () => undefined }, (update) =>
    authority.apply(update),
  );
  services.zones.onChange((id, zone) => feed.setZone(id, zone));
  for (const zone of services.zones.list()) feed.setZone(zone.id, zone);
  await feed.load();

  const tcp = new TcpListener(authority.answering, () => false);
  const udp = new UdpListener(authority.answering);
  return {
    listen: (host, port) => listenOnBoth(tcp, udp, host, port),
    async close() {
      await Promise.all([tcp.close(), udp.close()]);
    },
  };
}

const attemptsMax = 20;

/** TCP and UDP on one port; a free one of TCP may be taken in UDP, and then another is tried. */
async function listenOnBoth(
  tcp: TcpListener,
  udp: UdpListener,
  host: string,
  port: number,
): Promise<AddressInfo> {
  for (let attempt = 1; ; attempt++) {
    const address = await tcp.listen(host, port);
    try {
      await udp.listen(host, address.port, false);
      return address;
    } catch (error) {
      await tcp.close();
      if (port !== 0 || attempt >= attemptsMax) throw error;
    }
  }
}

/** Where visitors reach the edge: as configured, else where it listens. */
function edgeAddressesOf(config: Config): readonly string[] {
  if (config.edgeAddresses.length > 0) return config.edgeAddresses;
  const { host } = parseAddress(config.edgeListen)!;
  if (host === "localhost") return ["127.0.0.1"];
  if (isIP(host) !== 0 && host !== "0.0.0.0" && host !== "::") return [host];
  return Object.values(networkInterfaces())
    .flatMap((list) => list ?? [])
    .filter(
      ({ internal, address, family }) =>
        !internal && !address.startsWith("fe80:") && (host === "::" || family === "IPv4"),
    )
    .map(({ address }) => address);
}
