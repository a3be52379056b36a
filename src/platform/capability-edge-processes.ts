import { capability } from "../capability.ts";
import { metrics } from "./observability/capability.ts";
import { ownListeners, storage } from "./capability.ts";
import { processes } from "./capability-processes.ts";
import { callsPath, metricsCall, type EdgeMetrics } from "./processes/protocol.ts";
import { notifySupervisor } from "./processes/supervised.ts";

/** In the main process: the edge processes, which answer no request without a change after the API has answered. */
export const fleet = capability({
  name: "edge processes",
  needs: [storage, metrics, ownListeners, processes],
  async create({ own, config, logger, storage: database, ...needed }) {
    if (own.role !== "main") return { fleet: undefined };
    const { Fleet } = await import("./processes/fleet.ts");
    const { folder } = own.supervised;
    const created = new Fleet({
      folder,
      serving: own.supervised.serving,
      reloadMsMax: (config.processStartSeconds + config.databaseWaitSeconds) * 1000,
      bus: needed.messageBus,
      dnsAddress: () => needed.dnsListener.authority,
      lagSeconds: () => database.lagSeconds,
      metricsOf: async (id) => needed.calls!.ask<EdgeMetrics>(metricsCall, {}, callsPath(folder, id)),
      onStalled(id) {
        logger.error({ edge: id }, "an edge process does not answer and is replaced");
        notifySupervisor({ is: "stalled", id });
      },
    });
    database.onChange(
      async (changes) => created.broadcast(changes),
      async () => async () => created.reload(),
    );
    if (needed.metrics !== undefined) needed.metrics.others = async () => created.metrics();
    return { fleet: created };
  },
  /** The last part of the start: edge processes may now join. */
  async run(services) {
    await services.fleet?.listen();
  },
  close: (services) => services.fleet?.close(),
});
