import { capability } from "../../capability.ts";
import { zones } from "../../control/zones/capability.ts";
import { tracing } from "../../platform/tracing/capability.ts";
import { outbound } from "../origin/capability.ts";
import { processes } from "../../platform/capability-processes.ts";
import { isMain } from "../../platform/processes/own-process.ts";
import { Analytics } from "./analytics.ts";
import { shareObservations } from "./between-processes.ts";
import { Probes } from "./probes.ts";
import { relayHandler } from "./relay-handler.ts";
import { parseRelay, Relays } from "./relays.ts";
import { SmartRouting } from "./routing.ts";
import { declaration } from "./declaration.ts";
import { smartRoutingErrors } from "./errors.ts";
import { smartRoutingErrorCodes } from "./api-errors.ts";

export const smartRouting = capability({
  name: "smart routing",
  processes: "all",
  declares: declaration,
  needs: [zones, outbound, tracing, processes],
  create({ config, logger, own, ...needed }) {
    const { relaySecret } = config;
    if (config.relays.length > 0 && relaySecret === undefined)
      throw new Error("Expected a value for relay-secret, as relays are set, but received none");
    const relays = new Relays(
      config.relays.map(parseRelay),
      relaySecret ?? "",
      needed.edgeSettings,
      needed.tracer,
    );
    const analytics = new Analytics();
    const routing = new SmartRouting(needed.origins, relays, analytics, logger);
    shareObservations(
      routing,
      analytics,
      needed.messageBus,
      own,
      (id) => needed.zones.find(id) !== undefined,
    );
    needed.zones.onChange((id, zone) => {
      if (zone !== undefined) return;
      analytics.remove(id);
      routing.forget(id);
    });
    return { smartRouting: analytics, routing, relays };
  },
  operations: async () => (await import("./api.ts")).smartRoutingOperations,
  errors: [{ title: "Smart routing", errors: smartRoutingErrors, codes: smartRoutingErrorCodes }],
  edgeHandlers({ config, origins, edgeSettings }) {
    const { relaySecret } = config;
    if (relaySecret === undefined) return [];
    return [{ phase: "relay", handler: relayHandler(relaySecret, origins, edgeSettings.bodyBytesMax) }];
  },
  // Main has the results of all processes.
  metrics: async ({ own, smartRouting: analytics, zones: known }) =>
    own.role === "edge"
      ? []
      : (await import("./metrics.ts")).smartRoutingMetrics(analytics, (id) => known.find(id)?.name),
  run({ own, relays, routing, logger }) {
    const probes = new Probes(relays, () => routing.setAside(), logger, isMain(own));
    probes.start();
    return () => probes.stop();
  },
  close: ({ relays }) => relays.close(),
});
