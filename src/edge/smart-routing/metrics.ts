import { Counter, Gauge, type Metric } from "prom-client";
import { metricPrefix } from "../../platform/observability/instruments.ts";
import type { Analytics } from "./analytics.ts";
import { boundsMs, type Histogram } from "./histogram.ts";

/** Only this many zones have series: the first ones with requests. */
const zonesMax = 1000;

/** Metrics of smart routing; `zoneName` is undefined for a zone that is deleted. */
export function smartRoutingMetrics(
  smartRouting: Analytics,
  zoneName: (id: string) => string | undefined,
): Metric[] {
  const metrics: Metric[] = [];
  const named = () =>
    [...smartRouting.entries()].slice(0, zonesMax).flatMap(([id, { lifetime }]) => {
      const zone = zoneName(id);
      return zone === undefined ? [] : [{ id, zone, lifetime }];
    });
  metrics.push(
    timesMetric(
      "smart_routing_ttfb_seconds",
      "Time to first byte with smart routing, and of the control group on the direct path",
      () =>
        named().flatMap(({ zone, lifetime }) =>
          (["smart", "direct"] as const).map((series) => ({
            labels: { zone, series },
            times: lifetime[series],
          })),
        ),
    ),
  );
  for (const [name, help, field] of [
    ["smart_routing_hedges_total", "Requests that smart routing has sent on a second path as well", "hedges"],
    ["smart_routing_failures_total", "Requests that failed on every path", "failures"],
  ] as const) {
    metrics.push(
      new Counter({
        name: metricPrefix + name,
        help,
        labelNames: ["zone"],
        registers: [],
        collect() {
          this.reset();
          for (const { zone, lifetime } of named()) this.inc({ zone }, lifetime[field]);
        },
      }),
    );
  }
  const paths = () =>
    named().flatMap(({ id, zone }) => smartRouting.pathsOf(id).map((report) => ({ zone, ...report })));
  const gauges: [
    name: string,
    help: string,
    value: (path: ReturnType<typeof paths>[number]) => number | undefined,
  ][] = [
    [
      "smart_routing_path_ttfb_seconds",
      "Expected time to first byte of a path",
      ({ ttfbMs }) => ttfbMs && ttfbMs / 1000,
    ],
    [
      "smart_routing_path_current",
      "1 for the path that requests take now",
      ({ isCurrent }) => Number(isCurrent),
    ],
    [
      "smart_routing_path_ejected",
      "1 while the path is excluded because it fails",
      ({ isEjected }) => Number(isEjected),
    ],
    [
      "smart_routing_path_requests",
      "Requests sent on the path since the node learned of it",
      ({ requests }) => requests,
    ],
    [
      "smart_routing_path_failures",
      "Requests that failed on the path since the node learned of it",
      ({ failures }) => failures,
    ],
  ];
  for (const [name, help, value] of gauges) {
    metrics.push(
      new Gauge({
        name: metricPrefix + name,
        help,
        labelNames: ["zone", "path"],
        registers: [],
        collect() {
          this.reset();
          for (const path of paths()) {
            const known = value(path);
            if (known !== undefined) this.set({ zone: path.zone, path: path.path }, known);
          }
        },
      }),
    );
  }
  return metrics;
}

/** A Prometheus histogram whose counts are kept by `Histogram`. */
function timesMetric(
  name: string,
  help: string,
  series: () => { labels: Record<string, string>; times: Histogram }[],
): Metric {
  const metricName = metricPrefix + name;
  const get = async () => ({
    name: metricName,
    help,
    type: "histogram",
    aggregator: "sum",
    values: series().flatMap(({ labels, times }) => {
      let below = 0;
      const buckets = boundsMs.map((bound, index) => {
        below += times.counts[index]!;
        return { metricName: `${metricName}_bucket`, labels: { ...labels, le: bound / 1000 }, value: below };
      });
      return [
        ...buckets,
        { metricName: `${metricName}_bucket`, labels: { ...labels, le: "+Inf" }, value: times.count },
        { metricName: `${metricName}_sum`, labels, value: times.sumMs / 1000 },
        { metricName: `${metricName}_count`, labels, value: times.count },
      ];
    }),
  });
  return { name: metricName, get } as unknown as Metric;
}
