import { capability } from "../../capability.ts";
import { storage } from "../../platform/capability.ts";
import { DnsSettingsOfZones } from "./dns-settings.ts";
import { declaration } from "./declaration.ts";

export const dnsSettings = capability({
  name: "DNS settings",
  declares: declaration,
  needs: [storage],
  create: (needed) => ({ dnsSettings: new DnsSettingsOfZones(needed.storage) }),
  operations: async () => (await import("./api-settings.ts")).dnsSettingsOperations,
  load: (services) => services.dnsSettings.load(),
});
