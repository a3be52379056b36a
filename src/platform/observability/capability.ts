import { capability } from "../../capability.ts";
import { processes } from "../capability-processes.ts";
import { metricsCall } from "../processes/protocol.ts";
import type { Metrics } from "./metrics.ts";

/** The metrics of all capabilities, on a listener of their own. prom-client is loaded only if it is configured. */
export const metrics = capability({
  name: "metrics",
  processes: "all",
  needs: [processes],
  async create({ config }) {
    const isWanted = config.metricsListen !== undefined;
    const created: Metrics | undefined = isWanted ? new (await import("./metrics.ts")).Metrics() : undefined;
    if (created === undefined) return { metrics: created, figures: undefined };
    const { figuresReader } = await import("./figures.ts");
    return { metrics: created, figures: figuresReader(async () => created.all()) };
  },
  async load(services, contributions) {
    const { own, calls, metrics: created } = services;
    created?.register(await contributions.metrics());
    if (own.role === "edge" && created !== undefined)
      calls!.serve(metricsCall, async (_details, { response }) => {
        response.end(JSON.stringify(await created.values()));
      });
  },
});
