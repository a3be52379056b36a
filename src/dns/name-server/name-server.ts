import type { AddressInfo } from "node:net";
import type { Logger } from "pino";
import type { Config } from "../../platform/config/settings.ts";
import type { Zones } from "../../control/zones/zones.ts";
import type { Storage } from "../../platform/storage/storage.ts";
import { releaseDns, type DnsSockets } from "../../platform/listen/sockets.ts";
import { sumOf, type AnswerCounts } from "./answer-counts.ts";
import { Authority, type AuthorityOptions, type OutwardCalls } from "./authority.ts";
import { resolversOf, type Server } from "./transport/client.ts";
import type { AskParent, Dnssec } from "../dnssec/dnssec.ts";
import { ZoneSigner } from "../dnssec/zone-signer.ts";
import { ZoneUpdater, type ZoneSources } from "./zone-updater.ts";
import { dsOf, lookUpAddresses, lookUpDs } from "./look-up.ts";
import { DnsListeners } from "./listeners.ts";
import { Threads } from "./threads.ts";
import type { DnsRecords } from "../records/records.ts";
import type { DnsSettingsOfZones } from "../settings/dns-settings.ts";
import { Notifier } from "../transfers/notifier.ts";
import type { OutgoingTransfers } from "../transfers/outgoing.ts";
import { loadSystemCalls } from "./udp/system-calls.ts";
import type { TakeQuestion } from "./under-test.ts";
import type { Update } from "./update.ts";
import { types } from "./wire/constants.ts";
import { nameKey } from "./wire/name.ts";
import type { LoggedQuery } from "./query-log.ts";
import type { AddressLookup } from "./zone/flattening.ts";
import { unawaited } from "../../platform/util/uncaught.ts";

/** The zones as the name server answers from them. */
export interface NameServer {
  /** Reads the zones from storage, and keeps them current from then on. */
  load(): Promise<void>;
  listen(sockets: DnsSockets): Promise<AddressInfo>;
  /** Checks periodically whether parents have the DS records of signed zones. Returns a function that stops it. */
  watchParents(): () => void;
  /** The sum over all threads. */
  answerCounts(): Promise<AnswerCounts>;
  /** Passes queries for names of these zones to a reader, from now on. */
  readQueries(zoneIds: readonly string[], read: (queries: readonly LoggedQuery[]) => void): void;
  /** The response to a message, as a client on this machine gets it over TCP; undefined for none. */
  ask(message: Buffer): Promise<Buffer | undefined>;
  /** For the test kit: sees each question first. */
  underTest(take: TakeQuestion): void;
  close(): Promise<void>;
}

/** The services that the name server reads. */
export interface NameServerSources {
  storage: Storage;
  zones: Zones;
  records: DnsRecords;
  dnssec: Dnssec;
  dnsSettings: DnsSettingsOfZones;
  transfers: OutgoingTransfers;
  /** Public addresses of the edge. */
  edgeAddresses: readonly string[];
}

export interface Installation {
  /** 16 bytes, the same on all nodes. */
  cookieSecret: Buffer;
  /** Treat external parents as updated at once, instead of querying them for DS records, for laboratories. */
  parentsFollow: boolean;
  /** TXT records of open ACME challenges, of all zones or of one. */
  listChallenges: ZoneSources["listChallenges"];
}

const parentTickMs = 1000;

/** The zones in wire format, in this thread and the name server's own. `apply` changes all of them. */
function createAnswering(
  config: Config,
  transfers: OutgoingTransfers,
  logger: Logger,
  installation: Installation,
  resolvers: readonly Server[],
) {
  const options: AuthorityOptions = {
    responseRateLimit: config.dnsResponseRateLimit,
    cookieSecret: cookieSecret(config, installation).toString("base64"),
    identity: config.colo.toLowerCase(),
  };
  const reader = { read: (_queries: readonly LoggedQuery[]): void => {} };
  const calls: OutwardCalls = {
    want: (wanted) => {
      unawaited(look(wanted));
    },
    onTransfer: (zoneId) => transfers.noteTransfer(zoneId),
    onQueries: (queries) => reader.read(queries),
  };
  const authority = new Authority(
    options,
    { makeSigner: (zoneName, key) => new ZoneSigner(zoneName, key), ...calls },
    logger,
  );
  const look = async (wanted: AddressLookup): Promise<void> => {
    const resolved = await lookUpAddresses(resolvers, wanted).catch(() => undefined);
    unawaited(apply({ kind: "resolved", wanted, resolved }));
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
  return { authority, threads, apply, reader };
}

/** Creates the name server, which then loads the zones and listens for queries. */
export async function createNameServer(
  config: Config,
  sources: NameServerSources,
  logger: Logger,
  installation: Installation,
): Promise<NameServer> {
  const { transfers, zones } = sources;
  const resolvers = resolversOf(config.resolvers);
  const answering = createAnswering(config, transfers, logger, installation, resolvers);
  const { authority, threads, apply } = answering;
  const notifier = new Notifier(transfers, (zoneId) => authority.space.get(zoneId), logger);
  const updater = new ZoneUpdater(zoneSourcesOf(sources, installation), (update) => {
    const applied = apply(update);
    if (update.kind === "names") notifier.notify(update.zoneId);
    if (update.kind === "zone") notifier.notify(update.configuration.id);
    return applied;
  });
  const setTransfers = (): void => {
    unawaited(apply({ kind: "transfers", config: transfers.config() }));
  };
  const listeners = new DnsListeners(
    authority,
    config.dnsUdp === "batched" ? await loadSystemCalls() : undefined,
  );
  if (config.dnsUdp === "batched" && !listeners.isBatched)
    logger.warn(
      "this runtime cannot receive datagrams in batches, so the name server receives them one at a time",
    );
  return {
    async load() {
      zones.onChange((id, zone) => updater.setZone(id, zone));
      for (const zone of zones.list()) updater.setZone(zone.id, zone);
      await updater.load();
      transfers.onChange(setTransfers);
      transfers.onNotify((zoneId) => notifier.notify(zoneId));
      setTransfers();
    },
    listen: (sockets) =>
      config.dnsThreads > 0 ? threads.listen(releaseDns(sockets)) : listeners.listen(sockets),
    watchParents: () =>
      watchParents(sources, askParent(authority, installation.parentsFollow ? undefined : resolvers), logger),
    readQueries(zoneIds, read) {
      answering.reader.read = read;
      unawaited(apply({ kind: "logs", zoneIds }));
    },
    ask: (message) =>
      new Promise((answered) => {
        const client = { address: "127.0.0.1", isTcp: true };
        authority.answering.take(message, message.length, client, answered);
      }),
    underTest: (take) => (authority.answering.underTest = take),
    answerCounts: async () => sumOf([authority.responder.counts, ...(await threads.counts())]),
    async close() {
      notifier.close();
      await Promise.all([listeners.close(), threads.close()]);
    },
  };
}

const zoneSourcesOf = (
  { storage, records, edgeAddresses, dnssec, dnsSettings }: NameServerSources,
  { listChallenges }: Installation,
): ZoneSources => ({
  storage,
  records,
  edgeAddresses: () => edgeAddresses,
  keyOf: (zoneId) => dnssec.keyOf(zoneId),
  settingsOf: (zoneId) => dnsSettings.find(zoneId),
  listChallenges,
});

function watchParents({ dnssec, zones }: NameServerSources, ask: AskParent, logger: Logger): () => void {
  const timer = setInterval(() => {
    unawaited(
      dnssec
        .checkParents((zoneId) => zones.find(zoneId)?.name, ask)
        .catch((error: unknown) =>
          logger.warn({ err: error }, "checking the parents of signed zones failed"),
        ),
    );
  }, parentTickMs);
  timer.unref();
  return () => clearInterval(timer);
}

/**
 * The parent's DS records: from this installation's zones if they include the parent, else from the
 * resolvers.
 */
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
  return dnsCookieSecret === undefined ? installation.cookieSecret : Buffer.from(dnsCookieSecret, "hex");
}
