/** Draws the benchmark's samples: time to first byte over time, without and with smart routing. */
interface Series {
  name: string;
  what: string;
  changeMs: number | undefined;
  off: readonly { atMs: number; ttfbMs: number }[];
  on: readonly { atMs: number; ttfbMs: number }[];
}

const [width, height, left, top, gap] = [760, 130, 50, 40, 46];
const ceilingMs = 700;
const colours = { off: "#b45309", on: "#1d4ed8" };

export function chart(all: readonly Series[]): string {
  const panels = all.map((series, index) => panel(series, top + index * (height + gap)));
  const total = top + all.length * (height + gap);
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${left + width + 20} ${total}" font-family="sans-serif" font-size="12" fill="#444">
<rect width="100%" height="100%" fill="#fff"/>
<text x="${left}" y="18">Time to first byte, ms (each dot one request; seconds since the start)</text>
<circle cx="${left + 470}" cy="14" r="3" fill="${colours.off}"/><text x="${left + 478}" y="18">smart routing off</text>
<circle cx="${left + 600}" cy="14" r="3" fill="${colours.on}"/><text x="${left + 608}" y="18">on</text>
${panels.join("\n")}
</svg>
`;
}

function panel({ name, what, changeMs, off, on }: Series, y: number): string {
  const endMs = Math.max(...off.map(({ atMs }) => atMs));
  const px = (ms: number): number => Math.round(left + (ms / endMs) * width);
  const py = (ms: number): number => Math.round(y + height - (Math.min(ms, ceilingMs) / ceilingMs) * height);
  const dots = (["off", "on"] as const).map((side) => {
    const samples = side === "off" ? off : on;
    // Drawing every second request halves the file's size.
    const path = samples.filter((_, i) => i % 2 === 0).map((s) => `M${px(s.atMs)} ${py(s.ttfbMs)}h0`);
    return `<path d="${path.join("")}" stroke="${colours[side]}" stroke-width="3" stroke-linecap="round" opacity=".55"/>`;
  });
  const lines = [0, 200, 400, 600].map(
    (ms) =>
      `<path d="M${left} ${py(ms)}h${width}" stroke="#ddd"/><text x="${left - 6}" y="${py(ms) + 4}" text-anchor="end">${ms}</text>`,
  );
  const change =
    changeMs === undefined
      ? ""
      : `<path d="M${px(changeMs)} ${y}v${height}" stroke="#999" stroke-dasharray="4"/>`;
  return `<g><text x="${left}" y="${y - 6}" font-weight="bold">${name}: ${what}</text>${lines.join("")}${change}${dots.join("")}<text x="${left + width}" y="${y + height + 14}" text-anchor="end">${Math.round(endMs / 1000)} s</text></g>`;
}
