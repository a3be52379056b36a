import type { Logger } from "pino";
import type { Config } from "../config/settings.ts";
import type { Edge } from "../edge/listener.ts";
import type { EdgeSettings } from "../edge/settings.ts";
import type { EdgeSnapshot } from "../edge/snapshot.ts";
import type { Services } from "../services.ts";
import type { Storage } from "../storage/storage.ts";
import { ConfiguredCertificates } from "./configured.ts";
import type { TlsListener } from "./listener.ts";
import { openLocalAuthority } from "./local-authority.ts";
import { createTlsEdge } from "./tls-edge.ts";

/** The TLS listener as the configuration wants it. */
export async function startTls(parts: {
  config: Config;
  services: Services;
  storage: Storage;
  edge: Edge;
  settings: EdgeSettings;
  snapshot: EdgeSnapshot;
  logger: Logger;
  /** Where the local authority is kept. */
  authorityDir: string;
}): Promise<TlsListener> {
  const { config, services, storage, edge, settings, snapshot, logger, authorityDir } = parts;
  return createTlsEdge({
    edge,
    settings,
    snapshot,
    storage,
    certificates: services.certificates,
    authority: openLocalAuthority(authorityDir),
    configured: new ConfiguredCertificates(config.tlsCertificates, logger),
    logger,
  });
}
