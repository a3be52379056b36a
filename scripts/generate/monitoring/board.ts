import { listedMetrics, type ListedMetric } from "./metric-list.ts";

interface Query {
  expression: string;
  /** A Grafana legend template. */
  legend: string;
}
interface Panel {
  title: string;
  unit: string;
  queries: Query[];
  description?: string;
}

const shown = 'instance=~"$instance"';
const rate = (name: string, more = ""): string => `rate(${name}{${shown}${more}}[$__rate_interval])`;
const quantile = (part: number, name: string, by = ""): string =>
  `histogram_quantile(${part}, sum by (le${by}) (rate(${name}_bucket{${shown}}[$__rate_interval])))`;

/** The panels to look at first in an incident. */
const overview: readonly Panel[] = [
  {
    title: "Requests of visitors",
    unit: "reqps",
    queries: [{ expression: `sum(${rate("selvedge_edge_requests_total")})`, legend: "all" }],
  },
  {
    title: "Share of answers with 5xx",
    unit: "percentunit",
    queries: [
      {
        expression: `sum(${rate("selvedge_edge_requests_total", ',status=~"5.."')}) / sum(${rate("selvedge_edge_requests_total")})`,
        legend: "5xx",
      },
    ],
  },
  {
    title: "Time of a request",
    unit: "s",
    queries: [0.5, 0.95, 0.99].map((part) => ({
      expression: quantile(part, "selvedge_edge_request_duration_seconds"),
      legend: `p${part * 100}`,
    })),
  },
  {
    title: "Lag of the event loop",
    unit: "s",
    queries: [
      {
        expression: `nodejs_eventloop_lag_p99_seconds{${shown}} and on (instance, job) selvedge_build_info`,
        legend: "{{instance}} p99",
      },
    ],
  },
  {
    title: "CPU",
    unit: "percentunit",
    queries: [
      {
        expression: `${rate("process_cpu_seconds_total")} and on (instance, job) selvedge_build_info`,
        legend: "{{instance}} server",
      },
      {
        expression: `sum by (instance) (${rate("selvedge_script_cpu_seconds_total")})`,
        legend: "{{instance}} scripts",
      },
    ],
  },
  {
    title: "Memory",
    unit: "bytes",
    queries: [
      {
        expression: `process_resident_memory_bytes{${shown}} and on (instance, job) selvedge_build_info`,
        legend: "{{instance}} server",
      },
      {
        expression: `sum by (instance) (selvedge_cell_memory_bytes{${shown}})`,
        legend: "{{instance}} scripts",
      },
    ],
  },
];

/** The panel of one metric of the list. */
function panelOf({ name, type, labels, meaning }: ListedMetric): Panel {
  const by = labels.length === 0 ? "" : ` by (${labels.join(", ")})`;
  const legend = labels.map((label) => `{{${label}}}`).join(" ") || "{{instance}}";
  const title = name.replace(/^selvedge_/, "");
  if (type === "histogram")
    return {
      title,
      unit: "s",
      description: meaning,
      queries: [0.5, 0.99].map((part) => ({
        expression: quantile(part, name, labels.map((label) => `, ${label}`).join("")),
        legend: `p${part * 100} ${labels.length === 0 ? "" : legend}`.trim(),
      })),
    };
  const expression =
    type === "counter"
      ? `sum${by} (${rate(name)})`
      : type === "timestamp"
        ? `abs(time() - ${name}{${shown}})`
        : labels.length === 0
          ? `${name}{${shown}}`
          : `max${by} (${name}{${shown}})`;
  return { title, unit: unitOf(name, type), description: meaning, queries: [{ expression, legend }] };
}

function unitOf(name: string, type: ListedMetric["type"]): string {
  const perSecond = type === "counter";
  if (/_bytes(_total)?$/.test(name)) return perSecond ? "Bps" : "bytes";
  if (name.endsWith("_seconds_total")) return "percentunit";
  if (name.endsWith("_seconds")) return "s";
  return perSecond ? "ops" : "short";
}

const columns = 3;
const width = 24 / columns;
const height = 7;

/** packaging/grafana/selvedge.json: a board for Grafana with the overview, and a panel for each metric of the list. */
export function board(): string {
  const sections = Map.groupBy(listedMetrics(), ({ section }) => section);
  const rows: [title: string, panels: readonly Panel[]][] = [
    ["Overview", overview],
    ...[...sections].map(([title, metrics]): [string, Panel[]] => [title, metrics.map(panelOf)]),
  ];
  let y = 0;
  let id = 0;
  const panels = rows.flatMap(([title, own], index): object[] => {
    const isOpen = index === 0;
    const row = { id: ++id, type: "row", title, collapsed: !isOpen, gridPos: { h: 1, w: 24, x: 0, y: y++ } };
    const placed = own.map((panel, at) => ({
      id: ++id,
      ...drawn(panel),
      gridPos: { h: height, w: width, x: (at % columns) * width, y: y + Math.floor(at / columns) * height },
    }));
    y += Math.ceil(own.length / columns) * height;
    return isOpen ? [{ ...row, panels: [] }, ...placed] : [{ ...row, panels: placed }];
  });
  const document = {
    title: "Selvedge",
    uid: "selvedge",
    tags: ["selvedge"],
    schemaVersion: 39,
    editable: true,
    refresh: "30s",
    time: { from: "now-6h", to: "now" },
    templating: { list: [source, instance] },
    panels,
  };
  return `${JSON.stringify(document, null, 1)}\n`;
}

const datasource = { type: "prometheus", uid: "${source}" };
const source = { name: "source", type: "datasource", query: "prometheus", label: "Source" };
const instance = {
  name: "instance",
  type: "query",
  label: "Node",
  datasource,
  query: { query: "label_values(selvedge_build_info, instance)", refId: "instance" },
  refresh: 2,
  includeAll: true,
  multi: true,
  allValue: ".*",
  current: { text: "All", value: "$__all" },
};

const drawn = ({ title, unit, queries, description }: Panel) => ({
  type: "timeseries",
  title,
  ...(description === undefined ? {} : { description }),
  datasource,
  fieldConfig: { defaults: { unit, min: 0, custom: { lineWidth: 1, fillOpacity: 8 } }, overrides: [] },
  options: { legend: { displayMode: "list", placement: "bottom" }, tooltip: { mode: "multi", sort: "desc" } },
  targets: queries.map(({ expression, legend }, index) => ({
    refId: String.fromCharCode(65 + index),
    expr: expression,
    legendFormat: legend,
  })),
});
