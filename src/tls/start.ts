import { readFileSync } from "node:fs";
import type { Logger } from "pino";
import type { Config } from "../config/settings.ts";
import type { Edge } from "../edge/listener.ts";
import type { EdgeSettings } from "../edge/settings.ts";
import type { EdgeSnapshot } from "../edge/snapshot.ts";
import type { Services } from "../services.ts";
import type { Storage } from "../storage/storage.ts";
import { factsOf, readChain } from "./certificate.ts";
import type { TlsListener } from "./listener.ts";
import { openLocalAuthority } from "./local-authority.ts";
import type { ServedCertificate } from "./secure-contexts.ts";
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
    configured: config.tlsCertificates.map(readFiles),
    logger,
  });
}

/** A certificate and its key in the files of "CERTIFICATE.pem:KEY.pem". */
function readFiles(text: string): ServedCertificate {
  const [certificateFile, keyFile, ...more] = text.split(":");
  if (certificateFile === undefined || keyFile === undefined || more.length > 0)
    throw new Error(
      `Expected CERTIFICATE.pem:KEY.pem for tls-certificates but received ${JSON.stringify(text)}`,
    );
  const certificate = readFileSync(certificateFile, "utf8");
  const [leaf] = readChain(certificate);
  const { hosts, expiresOn } = factsOf(leaf!);
  return { certificate, privateKey: readFileSync(keyFile, "utf8"), hosts, expiresOn, rank: 0.5 };
}
