import { capability } from "../../../capability.ts";
import { accessLogs } from "../../../platform/access-log/capability.ts";
import { nodes } from "../../../platform/capability-nodes.ts";
import { ownListeners, reservation, storage } from "../../../platform/capability.ts";
import { listenAt } from "../../../platform/listen/listen.ts";
import { metrics } from "../../../platform/observability/capability.ts";
import { createHealthServer } from "../../../platform/observability/health-listener.ts";
import { NodeHealth } from "../../../platform/observability/health.ts";
import { tracing } from "../../../platform/tracing/capability.ts";
import { accounts } from "../../accounts/capability.ts";
import { dashboard } from "../../sessions/capability.ts";
import { audit } from "../../audit/capability.ts";
import { tokens } from "../../tokens/capability.ts";
import { zones } from "../../zones/capability.ts";
import { createApi } from "./app.ts";
import { announceEnd, createApiServer, drain, listen } from "./listener.ts";
import { noApiHooks } from "./hooks.ts";
import { declaration } from "./declaration.ts";
import { apiErrors } from "../errors.ts";

/** The health of the node. Its own listener answers before the database is open. */
export const health = capability({
  name: "health",
  needs: [reservation],
  async create({ config, logger, sockets }) {
    const node = new NodeHealth(logger);
    if (config.healthListen === undefined) return { health: node, healthServer: undefined };
    const server = createHealthServer(node);
    await listenAt(server, sockets.take("healthListen"));
    return { health: node, healthServer: server };
  },
  load(services, contributions) {
    for (const [part, check] of Object.entries(contributions.health)) services.health.add(part, check);
  },
  async close({ healthServer }) {
    if (healthServer !== undefined) await drain(healthServer, 0);
  },
});

/** The management API: serves the operations of all capabilities. */
export const api = capability({
  name: "API",
  declares: declaration,
  needs: [
    reservation,
    ownListeners,
    storage,
    accessLogs,
    nodes,
    health,
    accounts,
    tokens,
    zones,
    dashboard,
    audit,
    metrics,
    tracing,
  ],
  create: () => ({ apiHooks: noApiHooks() }),
  async listen({ config, logger, apiChecks, apiListener, apiHooks, sockets, ...services }, contributions) {
    const app = createApi({
      services,
      operations: contributions.operations,
      idParameters: contributions.idParameters,
      logger,
      rateLimit: config.apiRateLimit,
      rateWindowSeconds: config.apiRateWindowSeconds,
      sharedRates: services.sharedRates,
      bodyBytesMax: config.apiBodyBytesMax,
      tracer: services.tracer,
      tracesTrustCallers: config.tracesTrustVisitors,
      hooks: apiHooks,
      ...apiChecks,
    });
    const server = createApiServer(app, services.health, {
      observe: services.metrics?.api,
      pages: services.dashboardPages,
      accessLog: services.apiLog,
      hooks: apiHooks,
    });
    if (contributions.apiUpgrade !== undefined) server.on("upgrade", contributions.apiUpgrade);
    apiListener.listensAt(await listen(server, sockets.take("apiListen")));
    return {
      announceEnd: () => announceEnd(server),
      close: (deadlineMs) => drain(server, deadlineMs),
    };
  },
  reset: ({ apiHooks }) => apiHooks.forgetRates(),
  errors: [{ title: "Every operation", errors: apiErrors }],
});

/** The listener of the metrics. It is here because the platform room knows no HTTP listeners. */
export const metricsApi = capability({
  name: "metrics listener",
  needs: [reservation, ownListeners, metrics],
  create: () => ({}),
  async listen({ metrics: registry, metricsListener, sockets }) {
    if (registry === undefined) return;
    const server = registry.createServer();
    metricsListener.listensAt(await listen(server, sockets.take("metricsListen")));
    return { close: () => drain(server, 0) };
  },
});
