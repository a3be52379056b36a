import { isIP, type AddressInfo } from "node:net";
import { networkInterfaces } from "node:os";
import type { Logger } from "pino";
import { parseAddress } from "../config/config.ts";
import type { Config } from "../config/settings.ts";
import type { Services } from "../services.ts";
import type { Storage } from "../storage/storage.ts";
import { sumOf, type AnswerCounts } from "./answer-counts.ts";
import { Authority, type AuthorityOptions, type OutwardCalls } from "./authority.ts";
import { resolversOf, type Server } from "./client.ts";
import type { AskParent } from "./dnssec.ts";
import { ZoneSigner } from "./dnssec/zone-signer.ts";
import { Feed } from "./feed.ts";
import { dsOf, lookUpAddresses, lookUpDs } from "./look-up.ts";
import { Listeners } from "./listeners.ts";
import { Threads } from "./threads.ts";
import { Notifier } from "./transfers/notifier.ts";
import { loadSystemCalls } from "./system-calls.ts";
import type { Update } from "./update.ts";
import { types } from "./wire/constants.ts";
import { nameKey } from "./wire/name.ts";
import type { Wanted } from "./zone/flattening.ts";

export interface NameServer {
  listen(host: string, port: number): Promise<AddressInfo>;
  /** Of all threads together. */
  answerCounts(): Promise<AnswerCounts>;
  close(): Promise<void>;
}

export interface Installation {
  /** 16 bytes, the same on all nodes. */
  cookieSecret: Buffer;
  /** Parents of zones elsewhere are not asked for DS records, as in a laboratory there are none. */
  parentsFollow: boolean;
}

const parentTickMs = 1000;

/** Fills the name server's memory from storage, keeps it current, and puts the listeners on it. */
export async function startNameServer(
  config: Config,
  services: Services,
  storage: Storage,
  logger: Logger,
  installation: Installation,
): Promise<NameServer> {
  const { transfers } = services;
  const resolvers = resolversOf(config.resolvers);
  const options: AuthorityOptions = {
    responseRateLimit: config.dnsResponseRateLimit,
    cookieSecret: cookieSecret(config, installation).toString("base64"),
    identity: config.colo.toLowerCase(),
  };
  const calls: OutwardCalls = {
    want: (wanted) => void look(wanted),
    onTransfer: (zoneId) => transfers.noteTransfer(zoneId),
  };
  const authority = new Authority(
    options,
    { makeSigner: (zoneName, key) => new ZoneSigner(zoneName, key), ...calls },
    logger,
  );
  const look = async (wanted: Wanted): Promise<void> => {
    const resolved = await lookUpAddresses(resolvers, wanted).catch(() => undefined);
    void apply({ kind: "resolved", wanted, resolved });
  };

  const threads = new Threads(
    config.dnsThreads,
    { options, isBatched: config.dnsUdp === "batched" },
    calls,
    logger,
  );
  const apply = (update: Update): Promise<void> => {
    authority.apply(update);
    return threads.apply(update);
  };

  const edgeAddresses = edgeAddressesOf(config);
  const notifier = new Notifier(transfers, (zoneId) => authority.space.get(zoneId), logger);
  const feed = new Feed(
    {
      storage,
      records: services.records,
      edgeAddresses: () => edgeAddresses,
      keyOf: (zoneId) => services.dnssec.keyOf(zoneId),
      settingsOf: (zoneId) => services.dnsSettings.find(zoneId),
    },
    (update) => {
      const applied = apply(update);
      if (update.kind === "names") notifier.notify(update.zoneId);
      if (update.kind === "zone") notifier.notify(update.facts.id);
      return applied;
    },
  );
  services.zones.onChange((id, zone) => feed.setZone(id, zone));
  for (const zone of services.zones.list()) feed.setZone(zone.id, zone);
  await feed.load();
  const setTransfers = (): void => void apply({ kind: "transfers", config: transfers.config() });
  transfers.onChange(setTransfers);
  transfers.onNotify((zoneId) => notifier.notify(zoneId));
  setTransfers();

  const listeners = new Listeners(
    authority,
    config.dnsUdp === "batched" ? await loadSystemCalls() : undefined,
  );
  if (config.dnsUdp === "batched" && !listeners.isBatched)
    logger.warn("this runtime cannot take datagrams in batches: the name server takes them one by one");
  const timer = setInterval(() => {
    services.dnssec
      .checkParents(
        (zoneId) => services.zones.find(zoneId)?.name,
        askParent(authority, installation.parentsFollow ? undefined : resolvers),
      )
      .catch((error: unknown) => logger.warn({ err: error }, "checking parents of signed zones failed"));
  }, parentTickMs);
  timer.unref();
  return {
    listen: (host, port) =>
      config.dnsThreads > 0 ? threads.listen(host, port) : listeners.listen(host, port, false),
    answerCounts: async () => sumOf([authority.responder.counts, ...(await threads.counts())]),
    async close() {
      clearInterval(timer);
      notifier.close();
      await Promise.all([listeners.close(), threads.close()]);
    },
  };
}

/** The parent's DS records: from our own zones where the parent is one of them, else from the resolvers. */
const askParent =
  ({ space }: Authority, resolvers: readonly Server[] | undefined): AskParent =>
  async (zoneName) => {
    const name = nameKey(zoneName);
    const parent = space.findParent(name);
    if (parent === undefined || parent.key === name)
      return resolvers === undefined ? "follows" : lookUpDs(resolvers, zoneName);
    const node = parent.node(name);
    const ds = node && parent.contents(node).sets.get(types.DS);
    return dsOf(ds?.rdatas ?? [], ds?.ttl ?? 0);
  };

function cookieSecret({ dnsCookieSecret }: Config, installation: Installation): Buffer {
  if (dnsCookieSecret === undefined) return installation.cookieSecret;
  if (/^[\da-f]{32}$/i.test(dnsCookieSecret)) return Buffer.from(dnsCookieSecret, "hex");
  throw new Error("Expected 32 hexadecimal digits for dns-cookie-secret but received something else");
}

/** Where visitors reach the edge: as configured, else where it listens. */
function edgeAddressesOf(config: Config): readonly string[] {
  if (config.edgeAddresses.length > 0) {
    const wrong = config.edgeAddresses.find((address) => isIP(address) === 0);
    if (wrong === undefined) return config.edgeAddresses;
    throw new Error(`Expected IP addresses for edge-addresses but received ${JSON.stringify(wrong)}`);
  }
  const { host } = parseAddress(config.edgeListen)!;
  if (host === "localhost") return ["127.0.0.1"];
  if (isIP(host) !== 0 && host !== "0.0.0.0" && host !== "::") return [host];
  return Object.values(networkInterfaces())
    .flatMap((list) => list ?? [])
    .filter(({ internal, address }) => !internal && !address.startsWith("fe80:"))
    .filter(({ family }) => host === "::" || family === "IPv4")
    .map(({ address }) => address);
}
