import { capability } from "../../capability.ts";
import { together } from "../../control/api/together.ts";
import { zoneSettings } from "../../control/zone-settings/capability.ts";
import { zones } from "../../control/zones/capability.ts";
import { storage } from "../../platform/capability.ts";
import { BotManagementSetting } from "./bot-management.ts";
import { noGeo, type GeoSource } from "./geo-source.ts";
import type { Config } from "../../platform/config/settings.ts";
import type { Logger } from "pino";
import { RequestCf } from "./request-cf.ts";
import { TrustedProxies } from "./trusted-proxies.ts";
import { declaration } from "./declaration.ts";

/** Information of the edge about a visitor: the `cf` object, and the setting that adds scores to it. */
export const clientInfo = capability({
  name: "client information",
  processes: "all",
  declares: declaration,
  needs: [storage, zones, zoneSettings],
  async create({ config, logger, ...needed }) {
    const botManagement = new BotManagementSetting(needed.storage);
    needed.zones.onChange((id, zone) => {
      if (zone === undefined) botManagement.forget(id);
    });
    const geo = await openGeo(config, logger);
    const requestCf = new RequestCf({
      colo: config.colo,
      geo,
      proxies: new TrustedProxies(config.trustedProxies),
      score: (zoneId, request, path) => botManagement.score(zoneId, request, path),
    });
    return { botManagement, geo, requestCf };
  },
  async operations() {
    const { botManagementOperations } = await import("./api.ts");
    const { zoneSettingsOperations } = await import("../../control/zone-settings/api-all-settings.ts");
    return together([...botManagementOperations, ...zoneSettingsOperations]);
  },
  load: ({ botManagement }) => botManagement.load(),
  reload: ({ geo }) => geo.reload(),
  close: ({ geo }) => geo.close(),
});

/** Opens the configured geo databases. The reader is imported only if one is configured. */
async function openGeo({ geoCity, geoAsn }: Config, logger: Logger): Promise<GeoSource> {
  if (geoCity === undefined && geoAsn === undefined) return noGeo;
  const { GeoDatabase } = await import("./geo.ts");
  const warn = (error: Error): void =>
    logger.warn({ err: error }, "a geo database could not be reloaded, and its old data stays in use");
  return GeoDatabase.open({ city: geoCity, asn: geoAsn }, warn);
}
