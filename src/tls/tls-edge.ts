import type { Logger } from "pino";
import type { Edge } from "../edge/listener.ts";
import type { EdgeSettings } from "../edge/settings.ts";
import type { EdgeSnapshot } from "../edge/snapshot.ts";
import type { Storage } from "../storage/storage.ts";
import type { Certificate, Certificates } from "./certificates.ts";
import type { ConfiguredCertificates } from "./configured.ts";
import { TlsListener } from "./listener.ts";
import type { LocalAuthority } from "./local-authority.ts";
import { SecureContexts, type ServedCertificate } from "./secure-contexts.ts";

export interface TlsEdgeOptions {
  edge: Edge;
  settings: EdgeSettings;
  snapshot: EdgeSnapshot;
  storage: Storage;
  certificates: Certificates;
  authority: LocalAuthority;
  /** Given by files in the configuration. */
  configured: ConfiguredCertificates;
  logger: Logger;
}

/** Puts the TLS listener before the edge, and keeps the certificates that it serves equal to what storage holds. */
export async function createTlsEdge(options: TlsEdgeOptions): Promise<TlsListener> {
  const { snapshot, storage, certificates, authority, edge, settings, logger } = options;
  const contexts = new SecureContexts(authority, (host) => snapshot.findZone(host) !== undefined);
  const { configured } = options;
  contexts.set("configuration", configured.current);
  configured.watch((list) => contexts.set("configuration", list));
  storage.onChange(async (changes) => {
    for (const { kind, id } of changes) {
      if (kind === "certificate") contexts.set(id, (await certificates.list(id)).map(served));
      if (kind === "zone" && snapshot.get(id) === undefined) contexts.set(id, []);
    }
  });
  const byZone = Map.groupBy(await certificates.loadAll(), (each) => each.zoneId);
  for (const [zoneId, list] of byZone) contexts.set(zoneId, list.map(served));
  return new TlsListener({
    edge,
    settings,
    contextFor: (name) => contexts.contextFor(name),
    fallback: configured.current[0] ?? authority.issue(["localhost", "127.0.0.1", "::1"]),
    logger,
    onClose: () => configured.close(),
  });
}

/** What users upload goes before what was issued for them; among theirs the legacy type does, then the priority. */
const served = (each: Certificate): ServedCertificate => ({
  certificate: each.certificate,
  privateKey: each.privateKey,
  hosts: each.hosts,
  expiresOn: each.expiresOn,
  rank: each.packId !== null ? 0 : (each.type === "legacy_custom" ? 2_000_000 : 1) + each.priority,
});
