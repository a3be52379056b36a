import { capability } from "../../capability.ts";
import { storage } from "../../platform/capability.ts";
import { dnsSettingsOperations } from "./api-settings.ts";
import { DnsSettingsOfZones } from "./dns-settings.ts";
import { declaration } from "./declaration.ts";

export const dnsSettings = capability({
  name: "DNS settings",
  declares: declaration,
  needs: [storage],
  create: (needed) => ({ dnsSettings: new DnsSettingsOfZones(needed.storage) }),
  operations: dnsSettingsOperations,
  load: (services) => services.dnsSettings.load(),
});
