import type { Logger } from "pino";
import type { Accounts } from "./control/accounts/accounts.ts";
import type { Members } from "./control/accounts/members.ts";
import type { AssetServer } from "./workers/assets/asset-server.ts";
import type { Assets } from "./workers/assets/assets.ts";
import type { DnsRecords } from "./dns/records/records.ts";
import type { DnsSettingsOfZones } from "./dns/settings/dns-settings.ts";
import type { Dnssec } from "./dns/dnssec/dnssec.ts";
import type { OutgoingTransfers } from "./dns/transfers/outgoing.ts";
import type { Metrics } from "./platform/observability/metrics.ts";
import type { Analytics } from "./edge/smart-routing/analytics.ts";
import type { BotManagementSetting } from "./edge/client-info/bot-management.ts";
import type { ImagesService } from "./products/images/index.ts";
import type { Rulesets } from "./control/rulesets/rulesets.ts";
import type { RuntimeServices } from "./runtime-service.ts";
import type { ScriptServices } from "./script-service.ts";
import type { Snippets } from "./products/snippets/snippets.ts";
import type { Blobs } from "./platform/storage/blobs.ts";
import type { Certificates } from "./edge/tls/certificates/certificates.ts";
import type { CertificatePacks } from "./edge/tls/certificates/packs.ts";
import type { ZoneSettings } from "./control/zone-settings/zone-settings.ts";
import type { TriggerServices } from "./trigger-service.ts";
import type { Tokens } from "./control/tokens/tokens.ts";
import type { WorkflowServices } from "./products/workflows/index.ts";
import type { Zones } from "./control/zones/zones.ts";

/** The services that operations use. server.ts creates them. */
export interface Services extends ScriptServices, RuntimeServices, TriggerServices, WorkflowServices {
  accounts: Accounts;
  members: Members;
  tokens: Tokens;
  zones: Zones;
  records: DnsRecords;
  dnssec: Dnssec;
  transfers: OutgoingTransfers;
  dnsSettings: DnsSettingsOfZones;
  rulesets: Rulesets;
  smartRouting: Analytics;
  certificates: Certificates;
  /** Undefined without `metrics-listen`. */
  metrics: Metrics | undefined;
  certificatePacks: CertificatePacks;
  zoneSettings: ZoneSettings;
  /** Public addresses of the edge. */
  edgeAddresses: readonly string[];
  snippets: Snippets;
  botManagement: BotManagementSetting;
  assets: Assets;
  assetServer: AssetServer;
  images: ImagesService;
  blobs: Blobs;
  logger: Logger;
}
