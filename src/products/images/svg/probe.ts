import { MalformedXml, readXml } from "./xml.ts";

/** The size that browsers assume for an SVG without one. */
const defaultSize = { width: 300, height: 150 };

/** The size in the root element of an SVG. */
export function probeSvg(head: string): { width: number; height: number } {
  for (const token of readXml(head)) {
    if (token.kind !== "open") continue;
    if (token.name !== "svg") throw new MalformedXml(`its root is ${token.name.slice(0, 80)}`);
    const [, , boxWidth, boxHeight] = (token.attributes.get("viewBox") ?? "")
      .trim()
      .split(/[\s,]+/)
      .map(Number);
    return {
      width: pixels(token.attributes.get("width")) ?? positive(boxWidth) ?? defaultSize.width,
      height: pixels(token.attributes.get("height")) ?? positive(boxHeight) ?? defaultSize.height,
    };
  }
  throw new MalformedXml("it has no root");
}

const pixels = (length: string | undefined): number | undefined =>
  positive(Number(/^\s*(\d{1,9}(?:\.\d{1,9})?)(?:px)?\s*$/.exec(length ?? "")?.[1]));

const positive = (value: number | undefined): number | undefined =>
  value !== undefined && value > 0 && Number.isFinite(value) ? Math.max(1, Math.round(value)) : undefined;
