// `npm run generate` makes this file from the list in capabilities.ts.
import { reservation, ownListeners, dataFolder, storage } from "./platform/capability.ts";
import { snippetRules, snippets } from "./products/snippets/capability.ts";
import { toMain } from "./edge/processes/capability.ts";
import { metrics } from "./platform/observability/capability.ts";
import { accessLogs } from "./platform/access-log/capability.ts";
import { tracing } from "./platform/tracing/capability.ts";
import { installation, accounts } from "./control/accounts/capability.ts";
import { zones } from "./control/zones/capability.ts";
import { tokens } from "./control/tokens/capability.ts";
import { zoneSettings } from "./control/zone-settings/capability.ts";
import { rulesets } from "./control/rulesets/capability.ts";
import { records } from "./dns/records/capability.ts";
import { outbound } from "./edge/origin/capability.ts";
import { smartRouting } from "./edge/smart-routing/capability.ts";
import { certificates } from "./edge/tls/certificates/capability.ts";
import { acme } from "./edge/tls/acme/capability.ts";
import { edgeConfiguration } from "./edge/configuration/capability.ts";
import { clientInfo } from "./edge/client-info/capability.ts";
import { edgeServer } from "./edge/capability.ts";
import { tls } from "./edge/tls/capability.ts";
import { runtime } from "./workers/runtime/capability.ts";
import { images } from "./products/images/capability.ts";
import { logpushCollection } from "./products/logpush/capability.ts";

/** The capabilities of edge processes, which load no others. */
export const edgeCapabilities = [
  reservation,
  snippetRules,
  ownListeners,
  toMain,
  dataFolder,
  storage,
  metrics,
  accessLogs,
  tracing,
  installation,
  accounts,
  zones,
  tokens,
  zoneSettings,
  rulesets,
  records,
  outbound,
  smartRouting,
  certificates,
  acme,
  edgeConfiguration,
  clientInfo,
  edgeServer,
  tls,
  runtime.atEdges!,
  images.atEdges!,
  snippets.atEdges!,
  logpushCollection,
] as const;
