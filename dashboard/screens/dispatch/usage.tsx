import { count, duration, timeOf } from "../../core/format.ts";
import { useRows } from "../../core/pages.ts";
import { href, navigate, useSearch } from "../../core/router.ts";
import { useEffect } from "preact/hooks";
import { AsCode } from "../../code/as-code.tsx";
import { Choice } from "../../parts/filter.tsx";
import { Grid, type Column } from "../../parts/grid.tsx";
import { Notice, State } from "../../parts/layout.tsx";
import { Empty, Loaded } from "../../parts/states.tsx";
import { one } from "./namespace.ts";
import { atMost, Faults, LastFault, readEveryMs, type Usage } from "./usage-of-customer.tsx";

const orders = [
  { value: "requests", label: "By requests" },
  { value: "faults", label: "By faults" },
  { value: "cpu_ms", label: "By CPU time" },
] as const;
const columnsOf = (base: string): Column<Usage>[] => [
  {
    key: "name",
    title: "Customer",
    width: "minmax(100px, 2fr)",
    cell: ({ script_name: name, quarantined }) => (
      <span class="row">
        <a href={href(`${base}/${encodeURIComponent(name)}`)}>{name}</a>
        {quarantined && <State tone="warn">on its own</State>}
      </span>
    ),
  },
  {
    key: "logs",
    title: "Follow",
    width: "88px",
    isBelow: true,
    cell: ({ script_name: name }) => (
      <a href={href(`${base}/${encodeURIComponent(name)}?tab=logs`)}>Live logs</a>
    ),
  },
  {
    key: "requests",
    title: "Requests",
    width: "80px",
    isNumber: true,
    cell: ({ requests }) => count(requests),
  },
  {
    key: "faults",
    title: "Faults",
    width: "76px",
    isNumber: true,
    cell: (usage) => <Faults of={usage} />,
  },
  {
    key: "cpu",
    title: "CPU time",
    width: "88px",
    isNumber: true,
    cell: ({ cpu_ms: ms }) => duration(ms),
  },
  {
    key: "quantiles",
    title: "CPU p50 · p99",
    width: "152px",
    isNumber: true,
    isExtra: true,
    cell: ({ cpu_ms_p50: half, cpu_ms_p99: most }) => `${atMost(half)} · ${atMost(most)}`,
  },
  {
    key: "fault",
    title: "Last fault",
    width: "minmax(120px, 3fr)",
    isBelow: true,
    cell: (usage) => <LastFault of={usage} />,
  },
];

interface UsageTabProps {
  place: Readonly<Record<string, string>>;
  path: string;
  /** The address of the namespace's screen. */
  base: string;
}

/** The customers with runs in the last hour, the busiest first. */
export function UsageTab({ place, path, base }: UsageTabProps) {
  const [chosen, setOrder] = useSearch("order", "requests");
  const order = orders.find(({ value }) => value === chosen)?.value ?? "requests";
  const rows = useRows<Usage>(`${path}/usage?order=${order}`);
  const { data, reload } = rows.first;
  useEffect(() => {
    const timer = setInterval(() => !document.hidden && reload(), readEveryMs);
    return () => clearInterval(timer);
  });
  return (
    <>
      <div class="toolbar close">
        <Choice label="Order" value={order} options={orders} onChange={setOrder} />
        <span class="faint">{data?.[0] && `Since ${timeOf(data[0].since)}. CPU time is sampled.`}</span>
        <span class="spacer" />
        <AsCode call={{ op: `GET ${one}/usage`, params: place, query: { order } }} />
      </div>
      {rows.first.messages?.map(({ message }) => (
        <Notice key={message}>{message}.</Notice>
      ))}
      <Loaded
        of={rows.first}
        empty={
          <Empty icon="dispatch" title="No customer has run in the last hour">
            <p>A customer’s script runs when a script with a binding to this namespace dispatches to it.</p>
          </Empty>
        }
      >
        {() => (
          <Grid
            label="Usage"
            columns={columnsOf(base)}
            rows={rows}
            keyOf={({ script_name: name }) => name}
            onOpen={({ script_name: name }) => navigate(`${base}/${encodeURIComponent(name)}`)}
          />
        )}
      </Loaded>
    </>
  );
}
