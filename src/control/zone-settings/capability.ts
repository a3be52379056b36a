import { capability } from "../../capability.ts";
import { isOnLoopback } from "../../platform/config/derived.ts";
import { storage } from "../../platform/capability.ts";
import { zones } from "../zones/capability.ts";
import { ZoneSettings } from "./zone-settings.ts";
import { declaration } from "./declaration.ts";

/** The settings of zones that all products read. */
export const zoneSettings = capability({
  name: "zone settings",
  processes: "all",
  declares: declaration,
  needs: [storage, zones],
  create({ config, ...needed }) {
    const ssl = config.defaultSsl ?? (isOnLoopback(config) ? "flexible" : "full");
    const settings = new ZoneSettings(needed.storage, ssl);
    needed.zones.onChange((id, zone) => {
      if (zone === undefined) settings.forget(id);
    });
    return { zoneSettings: settings };
  },
  operations: async () => (await import("./api-settings.ts")).zoneSettingOperations,
  load: (services) => services.zoneSettings.load(),
});
