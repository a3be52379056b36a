import { capability } from "../../capability.ts";
import type { Metrics } from "./metrics.ts";

/** The metrics of all capabilities, on a listener of their own. prom-client is loaded only if it is configured. */
export const metrics = capability({
  name: "metrics",
  processes: "all",
  needs: [],
  async create({ config }) {
    const isWanted = config.metricsListen !== undefined;
    const created: Metrics | undefined = isWanted ? new (await import("./metrics.ts")).Metrics() : undefined;
    if (created === undefined) return { metrics: created, figures: undefined };
    const { figuresReader } = await import("./figures.ts");
    return { metrics: created, figures: figuresReader(async () => created.all()) };
  },
  async load(services, contributions) {
    const { own, metrics: created } = services;
    created?.register(await contributions.metrics());
    if (own.role === "edge" && created !== undefined) own.channel.metrics = async () => created.values();
  },
});
