// `npm run generate` makes this file from the list in capabilities.ts.
import { declaration as platform } from "./platform/declaration.ts";
import { declaration as controlApiServer } from "./control/api/server/declaration.ts";
import { declaration as controlAccounts } from "./control/accounts/declaration.ts";
import { declaration as controlZones } from "./control/zones/declaration.ts";
import { declaration as controlMembers } from "./control/members/declaration.ts";
import { declaration as controlZoneSettings } from "./control/zone-settings/declaration.ts";
import { declaration as dnsNameServer } from "./dns/name-server/declaration.ts";
import { declaration as edgeOrigin } from "./edge/origin/declaration.ts";
import { declaration as edgeSmartRouting } from "./edge/smart-routing/declaration.ts";
import { declaration as edgeTlsAcme } from "./edge/tls/acme/declaration.ts";
import { declaration as edgeClientInfo } from "./edge/client-info/declaration.ts";
import { declaration as edge } from "./edge/declaration.ts";
import { declaration as edgeTls } from "./edge/tls/declaration.ts";
import { declaration as sandbox } from "./sandbox/declaration.ts";
import { declaration as workersAssets } from "./workers/assets/declaration.ts";
import { declaration as workersScripts } from "./workers/scripts/declaration.ts";
import { declaration as workersRuntime } from "./workers/runtime/declaration.ts";
import { declaration as productsImages } from "./products/images/declaration.ts";
import { declaration as productsSnippets } from "./products/snippets/declaration.ts";
import { declaration as productsWorkflows } from "./products/workflows/declaration.ts";

/** The static parts of all capabilities. This module loads no capability, so every room and command can read it. */
export const declarations = [
  platform,
  controlApiServer,
  controlAccounts,
  controlZones,
  controlMembers,
  controlZoneSettings,
  dnsNameServer,
  edgeOrigin,
  edgeSmartRouting,
  edgeTlsAcme,
  edgeClientInfo,
  edge,
  edgeTls,
  sandbox,
  workersAssets,
  workersScripts,
  workersRuntime,
  productsImages,
  productsSnippets,
  productsWorkflows,
] as const;
