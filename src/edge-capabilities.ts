// `npm run generate` makes this file from the list in capabilities.ts.
import { reservation, ownListeners, dataFolder, storage, blobs } from "./platform/capability.ts";
import { snippetRules, snippetsForScripts, snippets } from "./products/snippets/capability.ts";
import { processes } from "./platform/capability-processes.ts";
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
import { sandbox } from "./sandbox/capability.ts";
import { bindings, startup } from "./workers/capability.ts";
import { assets } from "./workers/assets/capability.ts";
import { scripts } from "./workers/scripts/capability.ts";
import { assetUploads } from "./workers/assets/uploads/capability.ts";
import { dispatch } from "./workers/dispatch/capability.ts";
import { tails } from "./workers/tail/capability.ts";
import { scriptsForScripts, runtime } from "./workers/runtime/capability.ts";
import { objectsAtEdges } from "./workers/objects/at-edges.ts";
import { d1AtEdges } from "./products/d1/at-edges.ts";
import { kvAtEdges } from "./products/kv/at-edges.ts";
import { queuesAtEdges } from "./products/queues/at-edges.ts";
import { imagesAtEdges } from "./products/images/at-edges.ts";
import { workflowsAtEdges } from "./products/workflows/at-edges.ts";
import { logpushCollection } from "./products/logpush/collection/capability.ts";

/** The capabilities of edge processes, which load no others. */
export const edgeCapabilities = [
  reservation,
  snippetRules,
  ownListeners,
  processes,
  toMain,
  dataFolder,
  storage,
  blobs,
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
  sandbox,
  bindings,
  startup,
  assets,
  scripts,
  assetUploads,
  dispatch,
  tails,
  scriptsForScripts,
  runtime,
  objectsAtEdges,
  d1AtEdges,
  kvAtEdges,
  queuesAtEdges,
  imagesAtEdges,
  snippetsForScripts,
  snippets,
  workflowsAtEdges,
  logpushCollection,
] as const;
