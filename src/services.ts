import type { Logger } from "pino";
import type { Accounts } from "./accounts/accounts.ts";
import type { AssetServer } from "./assets/asset-server.ts";
import type { Assets } from "./assets/assets.ts";
import type { DnsRecords } from "./dns/records.ts";
import type { DnsSettingsOfZones } from "./name-server/dns-settings.ts";
import type { Dnssec } from "./name-server/dnssec.ts";
import type { OutgoingTransfers } from "./name-server/transfers/outgoing.ts";
import type { Metrics } from "./observability/metrics.ts";
import type { Analytics } from "./smart-routing/analytics.ts";
import type { BotManagementSetting } from "./request-cf/bot-management.ts";
import type { ImagesService } from "./images/index.ts";
import type { Rulesets } from "./rulesets/rulesets.ts";
import type { RuntimeServices } from "./runtime-service.ts";
import type { ScriptServices } from "./script-service.ts";
import type { Snippets } from "./snippets/snippets.ts";
import type { Blobs } from "./storage/blobs.ts";
import type { Certificates } from "./tls/certificates.ts";
import type { CertificatePacks } from "./tls/packs.ts";
import type { ZoneSettings } from "./tls/zone-settings.ts";
import type { TriggerServices } from "./trigger-service.ts";
import type { Tokens } from "./tokens/tokens.ts";
import type { WorkflowServices } from "./workflows/index.ts";
import type { Zones } from "./zones/zones.ts";

/** What operations work with; server.ts makes it. */
export interface Services extends ScriptServices, RuntimeServices, TriggerServices, WorkflowServices {
  accounts: Accounts;
  tokens: Tokens;
  zones: Zones;
  records: DnsRecords;
  dnssec: Dnssec;
  transfers: OutgoingTransfers;
  dnsSettings: DnsSettingsOfZones;
  rulesets: Rulesets;
  smartRouting: Analytics;
  certificates: Certificates;
  /** Undefined where nobody asks for them. */
  metrics: Metrics | undefined;
  certificatePacks: CertificatePacks;
  zoneSettings: ZoneSettings;
  snippets: Snippets;
  botManagement: BotManagementSetting;
  assets: Assets;
  assetServer: AssetServer;
  images: ImagesService;
  blobs: Blobs;
  logger: Logger;
}
