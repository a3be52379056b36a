import { AggregatorRegistry, type Registry } from "prom-client";
import type { EdgeMetrics } from "../processes/protocol.ts";

/** Gauges that each process has for itself. Others describe the node, and the main process has them. */
const ofProcesses = /^(process_|nodejs_|selvedge_edge_|selvedge_cells$|selvedge_cell_memory_bytes$)/;

/** The metrics of the main process, with those of edge processes added. */
export async function sumOf(main: Registry, edges: readonly EdgeMetrics[]): Promise<Registry> {
  if (edges.length === 0) return main;
  const added = edges.map((metrics) =>
    metrics.filter(({ name, type }) => String(type) !== "gauge" || ofProcesses.test(name)),
  );
  return AggregatorRegistry.aggregate([await main.getMetricsAsJSON(), ...added]);
}
