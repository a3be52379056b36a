// `npm run generate` makes this file from the list in capabilities.ts.
import { declaration as platform } from "./platform/declaration.ts";
import { declaration as testApi } from "./test-api/declaration.ts";
import { declaration as controlApiServer } from "./control/api/server/declaration.ts";
import { declaration as platformAccessLog } from "./platform/access-log/declaration.ts";
import { declaration as platformTracing } from "./platform/tracing/declaration.ts";
import { declaration as controlAccounts } from "./control/accounts/declaration.ts";
import { declaration as controlZones } from "./control/zones/declaration.ts";
import { declaration as controlTokens } from "./control/tokens/declaration.ts";
import { declaration as controlSessions } from "./control/sessions/declaration.ts";
import { declaration as controlAudit } from "./control/audit/declaration.ts";
import { declaration as controlMembers } from "./control/members/declaration.ts";
import { declaration as controlZoneSettings } from "./control/zone-settings/declaration.ts";
import { declaration as controlRulesets } from "./control/rulesets/declaration.ts";
import { declaration as dnsRecords } from "./dns/records/declaration.ts";
import { declaration as dnsDnssec } from "./dns/dnssec/declaration.ts";
import { declaration as dnsSettings } from "./dns/settings/declaration.ts";
import { declaration as dnsTransfers } from "./dns/transfers/declaration.ts";
import { declaration as dnsNameServer } from "./dns/name-server/declaration.ts";
import { declaration as edgeOrigin } from "./edge/origin/declaration.ts";
import { declaration as edgeSmartRouting } from "./edge/smart-routing/declaration.ts";
import { declaration as edgeTlsCertificates } from "./edge/tls/certificates/declaration.ts";
import { declaration as edgeTlsAcme } from "./edge/tls/acme/declaration.ts";
import { declaration as edgeClientInfo } from "./edge/client-info/declaration.ts";
import { declaration as edge } from "./edge/declaration.ts";
import { declaration as edgeTls } from "./edge/tls/declaration.ts";
import { declaration as sandbox } from "./sandbox/declaration.ts";
import { declaration as workersAssets } from "./workers/assets/declaration.ts";
import { declaration as workersScripts } from "./workers/scripts/declaration.ts";
import { declaration as workersAssetsUploads } from "./workers/assets/uploads/declaration.ts";
import { declaration as workersDispatch } from "./workers/dispatch/declaration.ts";
import { declaration as workersTail } from "./workers/tail/declaration.ts";
import { declaration as workersRuntime } from "./workers/runtime/declaration.ts";
import { declaration as workersObjects } from "./workers/objects/declaration.ts";
import { declaration as productsD1 } from "./products/d1/declaration.ts";
import { declaration as productsKv } from "./products/kv/declaration.ts";
import { declaration as productsQueues } from "./products/queues/declaration.ts";
import { declaration as productsSchedules } from "./products/schedules/declaration.ts";
import { declaration as productsImages } from "./products/images/declaration.ts";
import { declaration as productsSnippets } from "./products/snippets/declaration.ts";
import { declaration as productsWorkflows } from "./products/workflows/declaration.ts";
import { declaration as productsLogpush } from "./products/logpush/declaration.ts";

/** The static parts of all capabilities. This module loads no capability, so every room and command can read it. */
export const declarations = [
  platform,
  testApi,
  controlApiServer,
  platformAccessLog,
  platformTracing,
  controlAccounts,
  controlZones,
  controlTokens,
  controlSessions,
  controlAudit,
  controlMembers,
  controlZoneSettings,
  controlRulesets,
  dnsRecords,
  dnsDnssec,
  dnsSettings,
  dnsTransfers,
  dnsNameServer,
  edgeOrigin,
  edgeSmartRouting,
  edgeTlsCertificates,
  edgeTlsAcme,
  edgeClientInfo,
  edge,
  edgeTls,
  sandbox,
  workersAssets,
  workersScripts,
  workersAssetsUploads,
  workersDispatch,
  workersTail,
  workersRuntime,
  workersObjects,
  productsD1,
  productsKv,
  productsQueues,
  productsSchedules,
  productsImages,
  productsSnippets,
  productsWorkflows,
  productsLogpush,
] as const;
