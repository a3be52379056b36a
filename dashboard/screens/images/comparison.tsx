import { useState } from "preact/hooks";
import type { Delivered } from "./delivered.ts";
import type { Options } from "./options.ts";

/** How the original lies below its result: as its options would place it, without their effects on pixels. */
function placeOf({ fit = "", width = "", height = "", gravity = "" }: Options): Record<string, string> {
  const isBox = width !== "" && height !== "";
  if (isBox && fit === "squeeze") return { objectFit: "fill" };
  if (!isBox || !["cover", "crop", "aspect-crop"].includes(fit)) return { objectFit: "contain" };
  const [, x, y] = /^([\d.]+)x([\d.]+)$/.exec(gravity) ?? [];
  if (x !== undefined)
    return { objectFit: "cover", objectPosition: `${Number(x) * 100}% ${Number(y) * 100}%` };
  const isSide = /^(left|right|top|bottom)/.test(gravity);
  return { objectFit: "cover", objectPosition: isSide ? gravity.replace("-", " ") : "center" };
}

interface ComparisonProps {
  name: string;
  before: Delivered;
  after: Delivered;
  /** The name of the result: its options or variant. */
  text: string;
  options: Options;
}

/** The original and its result in one place, with a divider. Keys: ← → move it, Page ↑ ↓ further, Home and End to the ends. */
export function Comparison({ name, before, after, text, options }: ComparisonProps) {
  const [share, setShare] = useState(50);
  return (
    <figure class="comparison">
      <div
        class="comparison-frame"
        style={{ "--width": String(after.width), "--height": String(after.height), "--at": `${share}%` }}
      >
        <img class="before" src={before.url} alt={`${name}, the original`} style={placeOf(options)} />
        <img class="after" src={after.url} alt={`${name} with ${text}`} />
        <input
          type="range"
          min={0}
          max={100}
          value={share}
          aria-label="Divider between the original and the result"
          aria-valuetext={`${share} % original, ${100 - share} % result`}
          onInput={({ currentTarget }) => setShare(Number(currentTarget.value))}
        />
      </div>
      <figcaption class="hint">
        The original is left of the divider, the result right of it. ← and → move the divider.
      </figcaption>
    </figure>
  );
}
