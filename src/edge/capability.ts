import type { AddressInfo } from "node:net";
import { capability } from "../capability.ts";
import { zoneSettings } from "../control/zone-settings/capability.ts";
import { accessLogs } from "../platform/access-log/capability.ts";
import { reservation, storage } from "../platform/capability.ts";
import { metrics } from "../platform/observability/capability.ts";
import { addressInfoOf, OwnListener } from "../platform/own-listener.ts";
import { isEdge } from "../platform/processes/own-process.ts";
import { clientInfo } from "./client-info/capability.ts";
import { edgeConfiguration } from "./configuration/capability.ts";
import { OwnHosts } from "./configuration/own-hosts.ts";
import { tracing } from "../platform/tracing/capability.ts";
import { plainAddress } from "./origin/addresses.ts";
import { RequestTraces } from "./http/request-traces.ts";
import { outbound } from "./origin/capability.ts";
import { OriginErrors } from "./origin/origin-errors.ts";
import { systemLookUp } from "./origin/resolve.ts";
import { smartRouting } from "./smart-routing/capability.ts";
import { Edge } from "./request/listener.ts";
import { isLocalVisitor } from "./request/local-visitor.ts";
import type { EdgeRequest } from "./request/handlers.ts";
import { declaration } from "./declaration.ts";
import { visitorErrors } from "./http/errors.ts";

/** The listener of visitors' requests. */
export const edgeServer = capability({
  name: "edge",
  processes: "all",
  declares: declaration,
  needs: [
    reservation,
    storage,
    accessLogs,
    tracing,
    clientInfo,
    edgeConfiguration,
    metrics,
    outbound,
    smartRouting,
    zoneSettings,
  ],
  create({ config, logger, own, storage: database, ...needed }) {
    const edgeListener = new OwnListener();
    const edgeTlsListener = new OwnListener();
    const { tracer } = needed;
    const ownHosts = new OwnHosts(needed.snapshot, config.workersDomain);
    const opened = (scheme: "http" | "https") => (address: AddressInfo) => {
      ownHosts.listens(scheme, address);
      needed.policy.forbidSockets(address.port);
    };
    edgeListener.onListening(opened("http"));
    edgeTlsListener.onListening(opened("https"));
    needed.outbound.serve(ownHosts);
    const originErrors = new OriginErrors();
    const edge = new Edge({
      onError: originErrors.note,
      settings: needed.edgeSettings,
      requestCf: needed.requestCf,
      viaHeader: needed.viaHeader,
      origins: needed.origins,
      sslMode: (zoneId) => needed.zoneSettings.value(zoneId, "ssl"),
      routing: needed.routing,
      observe: needed.metrics?.edge,
      accessLog: needed.edgeLog,
      traces:
        tracer &&
        new RequestTraces(
          tracer,
          ({ socket }) =>
            config.tracesTrustVisitors || needed.requestCf.trusts(plainAddress(socket.remoteAddress ?? "")),
        ),
      snapshot: needed.snapshot,
      policy: needed.policy,
      lookUp: systemLookUp(undefined, undefined, needed.originsUnderTest),
      isStale:
        config.staleEdge === "refuse" ? () => database.lagSeconds > config.staleAfterSeconds : undefined,
      logger,
      mainChannel: own.role === "edge" ? own.channel : undefined,
    });
    // With trusted proxies, the address of a connection does not identify the visitor.
    const showsErrors = config.errorDetails === "local" && config.trustedProxies.length === 0;
    return {
      edge,
      originErrors,
      edgeListener,
      edgeTlsListener,
      /** Whether a response shows the details of an error in the code of an account. */
      isAuthor: (visitor: EdgeRequest) => showsErrors && isLocalVisitor(visitor),
    };
  },
  load({ edge }, { edgeHandlers }) {
    edge.use(
      edgeHandlers.map(({ handler }) => handler),
      edgeHandlers.flatMap(({ upgradeHandler }) => upgradeHandler ?? []),
    );
  },
  // The visitors of main's WebSockets are connected to edge processes, which count them.
  metrics: async ({ own, edge, origins, originErrors }) =>
    (await import("./metrics.ts")).edgeMetrics(
      isEdge(own) ? edge : { open: { connections: 0, webSockets: 0 } },
      origins,
      originErrors,
    ),
  async listen({ config, own, sockets, edge, edgeListener }) {
    if (!isEdge(own)) {
      edgeListener.listensAt(addressInfoOf(config.edgeListen));
      return { close: (deadlineMs) => edge.close(deadlineMs) };
    }
    edgeListener.listensAt(await edge.listen(sockets.take("edgeListen")));
    return edge;
  },
  errors: [{ title: "Visitors at the edge", errors: visitorErrors }],
});
