import type { Logger } from "pino";
import type { CurrentData } from "../../platform/processes/main-channel.ts";
import type { Edge } from "../request/listener.ts";
import type { EdgeSettings } from "../http/settings.ts";
import type { EdgeSnapshot } from "../configuration/snapshot.ts";
import type { Storage } from "../../platform/storage/storage.ts";
import type { Certificate, Certificates } from "./certificates/certificates.ts";
import type { ConfiguredCertificates } from "./certificates/configured.ts";
import type { TicketKeys } from "./ticket-keys.ts";
import { TlsListener } from "./listener.ts";
import type { LocalAuthority } from "./certificates/local-authority.ts";
import type { TlsCounts } from "./tls-counts.ts";
import { SecureContexts, type ServedCertificate } from "./secure-contexts.ts";

export interface TlsEdgeOptions {
  edge: Edge;
  settings: EdgeSettings;
  snapshot: EdgeSnapshot;
  storage: Storage;
  certificates: Certificates;
  ticketKeys?: TicketKeys;
  authority: LocalAuthority;
  /** From files in the configuration. */
  configured: ConfiguredCertificates;
  logger: Logger;
  mainChannel?: CurrentData | undefined;
  counts?: TlsCounts;
}

const configuration = "configuration";

/**
 * Certificates may contain names of other accounts, so a zone's certificates are served for its account's
 * hosts only.
 */
export function secureContexts(authority: LocalAuthority, snapshot: EdgeSnapshot): SecureContexts {
  return new SecureContexts(
    authority,
    (host) => snapshot.findZone(host) !== undefined,
    (owner, host) => {
      if (owner === configuration) return true;
      const accountId = snapshot.get(owner)?.configuration?.accountId;
      return accountId !== undefined && snapshot.findZone(host)?.configuration?.accountId === accountId;
    },
  );
}

/** Starts the TLS listener and keeps its certificates equal to storage. */
export async function createTlsEdge(options: TlsEdgeOptions): Promise<TlsListener> {
  const { snapshot, storage, certificates, authority, edge, settings, logger } = options;
  const contexts = secureContexts(authority, snapshot);
  const { configured } = options;
  contexts.set(configuration, configured.current);
  configured.watch((list) => contexts.set(configuration, list));
  const read = async (): Promise<() => void> => {
    const byZone = Map.groupBy(await certificates.loadAll(), (each) => each.zoneId);
    return () => {
      const gone = contexts.owners().filter((owner) => owner !== configuration && !byZone.has(owner));
      for (const zoneId of gone) contexts.set(zoneId, []);
      for (const [zoneId, list] of byZone) contexts.set(zoneId, list.map(served));
    };
  };
  storage.onChange(async (changes) => {
    for (const { kind, id } of changes) {
      if (kind === "certificate") contexts.set(id, (await certificates.list(id)).map(served));
      if (kind === "zone" && snapshot.get(id) === undefined) contexts.set(id, []);
    }
  }, read);
  (await read())();
  return new TlsListener({
    edge,
    settings,
    contextFor: (name) => contexts.contextFor(name),
    fallback: configured.current[0] ?? authority.issue(["localhost", "127.0.0.1", "::1"]),
    logger,
    mainChannel: options.mainChannel,
    ...(options.counts === undefined ? {} : { counts: options.counts }),
    ...(options.ticketKeys === undefined ? {} : { ticketKeys: options.ticketKeys }),
    onClose: () => configured.close(),
    onReload: () => configured.reload(),
  });
}

/** Uploaded certificates are preferred to issued ones; among them the legacy type, then the priority. */
const served = (each: Certificate): ServedCertificate => ({
  certificate: each.certificate,
  privateKey: each.privateKey,
  hosts: each.hosts,
  expiresOn: each.expiresOn,
  rank: each.packId !== null ? 0 : (each.type === "legacy_custom" ? 2_000_000 : 1) + each.priority,
});
