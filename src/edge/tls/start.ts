import type { Logger } from "pino";
import type { Config } from "../../platform/config/settings.ts";
import type { Edge } from "../request/listener.ts";
import type { EdgeSettings } from "../request/settings.ts";
import type { EdgeSnapshot } from "../configuration/snapshot.ts";
import type { Services } from "../../services.ts";
import type { Storage } from "../../platform/storage/storage.ts";
import { ConfiguredCertificates } from "./certificates/configured.ts";
import type { TlsListener } from "./listener.ts";
import { openLocalAuthority } from "./certificates/local-authority.ts";
import { createTlsEdge } from "./tls-edge.ts";

/** Starts the TLS listener of the configuration. */
export async function startTls(parts: {
  config: Config;
  services: Services;
  storage: Storage;
  edge: Edge;
  settings: EdgeSettings;
  snapshot: EdgeSnapshot;
  logger: Logger;
  /** Folder of the local authority. */
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
