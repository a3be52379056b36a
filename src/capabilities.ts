import type { Capability, ServicesOf } from "./capability.ts";
import { members, owner } from "./control/members/capability.ts";
import { accounts, installation } from "./control/accounts/capability.ts";
import { api, health, metricsApi } from "./control/api/server/capability.ts";
import { nodesApi } from "./control/nodes/capability.ts";
import { audit } from "./control/audit/capability.ts";
import { rulesets } from "./control/rulesets/capability.ts";
import { dashboard } from "./control/sessions/capability.ts";
import { tokens } from "./control/tokens/capability.ts";
import { zoneSettings } from "./control/zone-settings/capability.ts";
import { zones } from "./control/zones/capability.ts";
import { dnssec } from "./dns/dnssec/capability.ts";
import { nameServer } from "./dns/name-server/capability.ts";
import { records } from "./dns/records/capability.ts";
import { dnsSettings } from "./dns/settings/capability.ts";
import { transfers } from "./dns/transfers/capability.ts";
import { clientInfo } from "./edge/client-info/capability.ts";
import { edgeConfiguration } from "./edge/configuration/capability.ts";
import { outbound } from "./edge/origin/capability.ts";
import { edgeServer } from "./edge/capability.ts";
import { smartRouting } from "./edge/smart-routing/capability.ts";
import { fromEdges, toMain } from "./edge/processes/capability.ts";
import { acme } from "./edge/tls/acme/capability.ts";
import { tls } from "./edge/tls/capability.ts";
import { certificates } from "./edge/tls/certificates/capability.ts";
import { metrics } from "./platform/observability/capability.ts";
import { accessLogs } from "./platform/access-log/capability.ts";
import { tracing } from "./platform/tracing/capability.ts";
import { backups } from "./platform/capability-backups.ts";
import { nodeLink } from "./platform/capability-node-link.ts";
import { nodes } from "./platform/capability-nodes.ts";
import { fleet } from "./platform/capability-edge-processes.ts";
import { processes } from "./platform/capability-processes.ts";
import { blobs, dataFolder, ownListeners, reservation, storage } from "./platform/capability.ts";
import { logpush } from "./products/logpush/capability.ts";
import { logpushCollection } from "./products/logpush/collection/capability.ts";
import { images } from "./products/images/capability.ts";
import { kv } from "./products/kv/capability.ts";
import { queues } from "./products/queues/capability.ts";
import { requestTracer } from "./products/request-tracer/capability.ts";
import { schedules } from "./products/schedules/capability.ts";
import { snippetRules, snippets, snippetsForScripts } from "./products/snippets/capability.ts";
import { workflows } from "./products/workflows/capability.ts";
import { sandbox } from "./sandbox/capability.ts";
import { assetUploads } from "./workers/assets/uploads/capability.ts";
import { assets } from "./workers/assets/capability.ts";
import { dispatch, dispatchUsage } from "./workers/dispatch/capability.ts";
import { bindings, startup } from "./workers/capability.ts";
import { d1 } from "./products/d1/capability.ts";
import { objects } from "./workers/objects/capability.ts";
import { previews } from "./workers/previews/capability.ts";
import { runtime, scriptsForScripts } from "./workers/runtime/capability.ts";
import { scripts } from "./workers/scripts/capability.ts";
import { tails } from "./workers/tail/capability.ts";
import { testApi, testMode } from "./test-api/capability.ts";

/** Every capability of the platform. Their needs decide the order in which they start, not this list. */
export const capabilities = [
  reservation,
  testMode, // first, so that it refuses before a database is opened
  snippetRules,
  ownListeners,
  processes,
  fleet,
  toMain,
  fromEdges,
  health,
  dataFolder,
  storage,
  blobs,
  nodes,
  nodeLink,
  metrics,
  accessLogs,
  tracing,
  installation,
  accounts,
  zones,
  tokens,
  dashboard,
  audit,
  members,
  owner,
  nodesApi,
  zoneSettings,
  rulesets,
  api,
  metricsApi,
  records,
  dnssec,
  dnsSettings,
  transfers,
  nameServer,
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
  dispatchUsage,
  tails,
  scriptsForScripts, // before the handlers of scripts and snippets
  runtime,
  previews,
  objects,
  d1,
  kv,
  queues,
  schedules,
  images,
  snippetsForScripts,
  snippets,
  requestTracer,
  workflows,
  logpushCollection,
  logpush,
  backups,
  testApi,
] as const satisfies readonly Capability[];

/** The services of all capabilities. Tests use them to look inside a running platform. */
export type Services = ServicesOf<typeof capabilities>;

/** Every operation of the management API. */
export const operations = (
  await Promise.all(capabilities.map(async (each: Capability) => each.operations()))
).flat();

/** The errors of all capabilities, in the order of the list. */
export const errorTables = capabilities.flatMap((each: Capability) => each.errors);
