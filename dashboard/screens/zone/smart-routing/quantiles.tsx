import { count } from "../../../core/format.ts";
import { State, Time } from "../../../parts/layout.tsx";
import { Table } from "../../../parts/table.tsx";
import { ms, shareOf, type OriginPath } from "./analytics.ts";

const [width, height] = [220, 20];

/** The times of a path on a scale that all paths share: a line from the median to p99, a mark at each quantile. */
function Range({ path, mostMs }: { path: OriginPath; mostMs: number }) {
  const { p50_ms: p50, p90_ms: p90, p99_ms: p99 } = path;
  if (p50 === null || p90 === null || p99 === null) return <span class="faint">no request yet</span>;
  const x = (value: number): number => 4 + (value / mostMs) * (width - 8);
  return (
    <svg class="range" viewBox={`0 0 ${width} ${height}`} role="img" aria-label={`Times of ${path.path}`}>
      <line x1={x(p50)} x2={x(p99)} y1={height / 2} y2={height / 2} />
      <circle cx={x(p50)} cy={height / 2} r={4} />
      <rect x={x(p90) - 1} y={4} width={2} height={height - 8} />
      <rect x={x(p99) - 1} y={6} width={2} height={height - 12} />
    </svg>
  );
}

/** All paths with the quantiles of their last 64 requests. */
export function PathTable({ paths }: { paths: readonly OriginPath[] }) {
  const mostMs = Math.max(1, ...paths.map(({ p99_ms }) => p99_ms ?? 0));
  return (
    <Table
      label="Paths"
      rows={paths}
      keyOf={({ origin, path }) => `${origin} ${path}`}
      columns={[
        {
          title: "Path",
          isWide: true,
          cell: ({ relay, address, port }) => (
            <code>
              {relay === null ? "direct" : relay} → {address}:{port}
            </code>
          ),
        },
        {
          title: "State",
          cell: ({ current, ejected, ejected_until: until }) =>
            ejected ? (
              <State tone="bad">set aside, tried {until !== null && <Time at={until} />}</State>
            ) : current ? (
              <State tone="ok">chosen</State>
            ) : (
              <State tone="off">measured</State>
            ),
        },
        { title: `0 to ${ms(mostMs)}`, cell: (path) => <Range path={path} mostMs={mostMs} /> },
        { title: "p50", isNumber: true, cell: ({ p50_ms }) => ms(p50_ms) },
        { title: "p90", isNumber: true, cell: ({ p90_ms }) => ms(p90_ms) },
        { title: "p99", isNumber: true, cell: ({ p99_ms }) => ms(p99_ms) },
        {
          title: "Share",
          isNumber: true,
          cell: (path) => `${Math.round(shareOf(path, paths) * 100)} %`,
        },
        { title: "Requests", isNumber: true, cell: ({ requests }) => count(requests) },
        { title: "Failures", isNumber: true, cell: ({ failures }) => count(failures) },
      ]}
    />
  );
}
