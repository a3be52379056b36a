import { capability } from "../../capability.ts";
import { OwnListener } from "../own-listener.ts";
import type { Metrics } from "./metrics.ts";

/** The metrics of all capabilities, on a listener of their own. prom-client is loaded only if it is configured. */
export const metrics = capability({
  name: "metrics",
  needs: [],
  async create({ config }) {
    const isWanted = config.metricsListen !== undefined;
    const created: Metrics | undefined = isWanted ? new (await import("./metrics.ts")).Metrics() : undefined;
    return { metrics: created, metricsListener: new OwnListener() };
  },
  async load(services, contributions) {
    services.metrics?.register(await contributions.metrics());
  },
});
