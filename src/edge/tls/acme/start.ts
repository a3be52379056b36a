import type { Logger } from "pino";
import type { Config } from "../../../platform/config/settings.ts";
import type { ZoneSettings } from "../../../control/zone-settings/zone-settings.ts";
import type { Zones } from "../../../control/zones/zones.ts";
import type { CertificatePacks } from "../certificates/packs.ts";
import type { Storage } from "../../../platform/storage/storage.ts";
import { UniversalPacks } from "../certificates/universal.ts";
import { AcmeAuthority } from "./authority.ts";
import { Challenges } from "./challenges.ts";
import { Renewal } from "./renewal.ts";
import { unawaited } from "../../../platform/util/uncaught.ts";

const tickMs = 1000;

/** Starts issuing certificates with the authority at this directory. */
export function startAcme(
  directory: string,
  config: Config,
  services: { certificatePacks: CertificatePacks; zones: Zones; zoneSettings: ZoneSettings },
  storage: Storage,
  logger: Logger,
): { close(): Promise<void> } {
  const { acmeEabKid: kid, acmeEabKey: hmacKey } = config;
  const externalAccount = kid === undefined || hmacKey === undefined ? undefined : { kid, hmacKey };
  const { acmeEmail: email, acmeCa: ca } = config;
  const method = config.acmeChallenge === "dns-01" ? "txt" : "http";
  const renewal = new Renewal({
    authority: new AcmeAuthority({ directory, email, ca, externalAccount }, storage, new Challenges(storage)),
    packs: services.certificatePacks,
    universal: new UniversalPacks(
      storage,
      services.zones,
      services.certificatePacks,
      services.zoneSettings,
      method,
    ),
    zoneOf: (id) => services.zones.find(id),
    retrySeconds: config.acmeRetrySeconds,
    logger,
  });
  const timer = setInterval(() => {
    unawaited(renewal.tick());
  }, tickMs);
  timer.unref();
  return {
    async close() {
      clearInterval(timer);
      await renewal.close();
    },
  };
}
