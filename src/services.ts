import type { Logger } from "pino";
import type { Accounts } from "./accounts/accounts.ts";
import type { AssetServer } from "./assets/asset-server.ts";
import type { Assets } from "./assets/assets.ts";
import type { DnsRecords } from "./dns/records.ts";
import type { Analytics } from "./smart-routing/analytics.ts";
import type { BotManagementSetting } from "./request-cf/bot-management.ts";
import type { Rulesets } from "./rulesets/rulesets.ts";
import type { ScriptServices } from "./script-service.ts";
import type { Snippets } from "./snippets/snippets.ts";
import type { Blobs } from "./storage/blobs.ts";
import type { Tokens } from "./tokens/tokens.ts";
import type { Zones } from "./zones/zones.ts";

/** What operations work with; server.ts makes it. */
export interface Services extends ScriptServices {
  accounts: Accounts;
  tokens: Tokens;
  zones: Zones;
  records: DnsRecords;
  rulesets: Rulesets;
  smartRouting: Analytics;
  snippets: Snippets;
  botManagement: BotManagementSetting;
  assets: Assets;
  assetServer: AssetServer;
  blobs: Blobs;
  logger: Logger;
}
