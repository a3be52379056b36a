import { Card } from "../../../parts/layout.tsx";
import { ms, shareOf, type OriginPath } from "./analytics.ts";

const [width, rowPx, marginPx] = [760, 56, 36];
const labelPx = 15;
const strokeOf = (share: number): number => 1.5 + share * 10;
const [edgeX, relayX, addressX] = [16, 250, 600];

/** The height of each of several nodes that are centred on a line. */
const spread = (count: number, index: number, height: number): number =>
  height / 2 + (index - (count - 1) / 2) * rowPx;

const curve = ([x1, y1]: readonly [number, number], [x2, y2]: readonly [number, number]): string => {
  const middle = (x1 + x2) / 2;
  return `C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`;
};

const stateOf = ({ ejected, current }: OriginPath): string =>
  ejected ? "set aside" : current ? "chosen" : "measured";

/** The paths to one origin: from this node, through relays or directly, to its addresses. The width is the share. */
export function PathDiagram({ paths }: { paths: readonly OriginPath[] }) {
  const addresses = [...new Set(paths.map(({ address }) => address))];
  // The direct way has a place of its own among the relays, so that no line crosses a node.
  const stops = [...new Set(paths.map(({ relay }) => relay))];
  const rows = Math.max(addresses.length, stops.length, paths.length);
  const height = rows * rowPx + 2 * marginPx;
  const placeOf = (list: readonly unknown[], each: unknown): number =>
    spread(list.length, list.indexOf(each), height);
  // Each label is at the end of its line, on the side from which the line does not come.
  const labelYOf = (path: OriginPath, endY: number, share: number): number => {
    const before = paths.slice(0, paths.indexOf(path)).filter(({ address }) => address === path.address);
    const offset = strokeOf(share) / 2 + before.length * labelPx;
    return endY > height / 2 ? endY + offset + labelPx : endY - offset - 6;
  };
  const lines = paths.map((path) => {
    const [stopY, endY] = [placeOf(stops, path.relay), placeOf(addresses, path.address)];
    const share = shareOf(path, paths);
    const start = [edgeX + 96, height / 2] as const;
    return {
      path,
      share,
      labelY: labelYOf(path, endY, share),
      d: `M${start.join(" ")} ${curve(start, [relayX, stopY])} H${relayX + 110} ${curve([relayX + 110, stopY], [addressX, endY])}`,
    };
  });
  const labels = paths.map(
    (path) =>
      `${path.relay === null ? "direct" : `through ${path.relay}`} to ${path.address}: ${stateOf(path)}, ${Math.round(shareOf(path, paths) * 100)} % of the requests, median ${ms(path.p50_ms)}`,
  );
  return (
    <Card title={`To port ${paths[0]!.port} of ${addresses.length === 1 ? addresses[0] : "the origin"}`}>
      <div class="table-frame" tabIndex={0} role="region" aria-label="Diagram of the paths">
        <svg
          class="paths"
          viewBox={`0 0 ${width} ${height}`}
          role="img"
          aria-label={`Paths: ${labels.join("; ")}`}
        >
          {lines
            .toSorted((a, b) => Number(a.path.current) - Number(b.path.current))
            .map(({ path, share, d }) => (
              <path
                key={path.path}
                class={path.ejected ? "aside" : path.current ? "chosen" : "other"}
                stroke-width={strokeOf(share)}
                d={d}
              />
            ))}
          <Node x={edgeX} y={height / 2} widthPx={96} text="This node" />
          {stops.map((relay) => (
            <Node
              key={relay ?? ""}
              x={relayX}
              y={placeOf(stops, relay)}
              widthPx={110}
              text={relay ?? "direct"}
              isFaint={relay === null}
            />
          ))}
          {addresses.map((address) => (
            <Node key={address} x={addressX} y={placeOf(addresses, address)} widthPx={150} text={address} />
          ))}
          {lines.map(({ path, share, labelY }) => (
            <text key={path.path} class="path-label" x={addressX - 12} y={labelY} text-anchor="end">
              <tspan class={path.ejected ? "aside" : path.current ? "chosen" : "other"}>
                {path.ejected ? "✕" : path.current ? "●" : "○"} {stateOf(path)}
              </tspan>
              <tspan>
                {" "}
                {Math.round(share * 100)} % · {ms(path.p50_ms)}
              </tspan>
            </text>
          ))}
        </svg>
      </div>
    </Card>
  );
}

interface NodeProps {
  x: number;
  y: number;
  widthPx: number;
  text: string;
  isFaint?: boolean;
}

const Node = ({ x, y, widthPx, text, isFaint = false }: NodeProps) => (
  <g class={`node ${isFaint ? "faint-node" : ""}`}>
    <rect x={x} y={y - 16} width={widthPx} height={32} rx={6} />
    <text x={x + widthPx / 2} y={y + 4} text-anchor="middle">
      {text.length > 18 ? `${text.slice(0, 17)}…` : text}
    </text>
  </g>
);
