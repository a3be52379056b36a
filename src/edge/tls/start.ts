import type { Logger } from "pino";
import type { Config } from "../../platform/config/settings.ts";
import type { CurrentData } from "../../platform/processes/main-channel.ts";
import type { Edge } from "../request/listener.ts";
import type { EdgeSettings } from "../http/settings.ts";
import type { EdgeSnapshot } from "../configuration/snapshot.ts";
import type { Storage } from "../../platform/storage/storage.ts";
import type { Certificates } from "./certificates/certificates.ts";
import { ConfiguredCertificates } from "./certificates/configured.ts";
import type { TlsListener } from "./listener.ts";
import { openLocalAuthority } from "./certificates/local-authority.ts";
import type { TlsCounts } from "./tls-counts.ts";
import type { TicketKeys } from "./ticket-keys.ts";
import { createTlsEdge } from "./tls-edge.ts";

/** Starts the TLS listener of the configuration. */
export async function startTls(parts: {
  config: Config;
  certificates: Certificates;
  storage: Storage;
  edge: Edge;
  settings: EdgeSettings;
  snapshot: EdgeSnapshot;
  logger: Logger;
  mainChannel: CurrentData | undefined;
  tlsCounts: TlsCounts;
  ticketKeys: TicketKeys;
  /** Folder of the local authority. */
  authorityDir: string;
}): Promise<TlsListener> {
  const {
    config,
    certificates,
    storage,
    edge,
    settings,
    snapshot,
    logger,
    mainChannel,
    authorityDir,
    ticketKeys,
    tlsCounts,
  } = parts;
  return createTlsEdge({
    edge,
    settings,
    snapshot,
    storage,
    certificates,
    ticketKeys,
    authority: openLocalAuthority(authorityDir),
    configured: new ConfiguredCertificates(config.tlsCertificates, logger),
    logger,
    mainChannel,
    counts: tlsCounts,
  });
}
