import type { AddressInfo } from "node:net";
import type { Logger } from "pino";
import type { Config } from "./config/settings.ts";
import { AddressPolicy } from "./edge/address-policy.ts";
import { Edge } from "./edge/listener.ts";
import { systemLookUp } from "./edge/resolve.ts";
import { edgeDefaults } from "./edge/settings.ts";
import { EdgeFeed } from "./edge/feed.ts";
import type { Services } from "./services.ts";
import type { Storage } from "./storage/storage.ts";

export interface EdgeService {
  listen(host: string, port: number): Promise<AddressInfo>;
  /** Makes sure that nobody is led to this listener of the node's own. */
  forbid(address: AddressInfo): void;
  close(deadlineMs: number): Promise<void>;
}

/** Fills the edge's memory from storage, keeps it current, and puts the listener on it. */
export async function startEdge(
  config: Config,
  services: Services,
  storage: Storage,
  logger: Logger,
  onLoopback: boolean,
): Promise<EdgeService> {
  const policy = new AddressPolicy(config.privateNetworks ?? (onLoopback ? "origins" : "deny"));
  const feed = new EdgeFeed(storage, services.rulesets);
  services.zones.onChange((id, zone) => feed.setZone(id, zone));
  await services.zones.load();
  await feed.load();
  const edge = new Edge({
    settings: { ...edgeDefaults, colo: config.colo },
    snapshot: feed.snapshot,
    policy,
    lookUp: systemLookUp(),
    logger,
  });
  return {
    listen: (host, port) => edge.listen(host, port),
    forbid: (address) => policy.forbidListener(address.port),
    close: (deadlineMs) => edge.close(deadlineMs),
  };
}
