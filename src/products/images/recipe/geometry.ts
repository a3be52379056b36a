import type { Focus } from "../image.ts";
import type { Fit, Gravity } from "./options.ts";

export interface Size {
  width: number;
  height: number;
}
export interface Box extends Size {
  left: number;
  top: number;
}

/** Pixel operations of a resize: scale, then crop to a box, then extend to a larger canvas. */
export interface Layout {
  scaled: Size;
  crop: Size | undefined;
  canvas: Box | undefined;
  output: Size;
  warning?: string;
}

const round = (value: number): number => Math.max(1, Math.round(value));
const scale = (size: Size, factor: number): Size => ({
  width: round(size.width * factor),
  height: round(size.height * factor),
});

/** The layout of an upright image for a box with one or both sides. */
export function layout(source: Size, box: Partial<Size>, fit: Fit): Layout {
  const { width, height } = box;
  if (width === undefined && height === undefined) return plain(source);
  if (width === undefined || height === undefined) {
    const factor = width === undefined ? height! / source.height : width / source.width;
    const bound =
      fit === "scale-down" || fit === "crop" || fit === "aspect-crop" ? Math.min(1, factor) : factor;
    const isPartial =
      fit === "cover" || fit === "crop" || fit === "pad" || fit === "squeeze" || fit === "aspect-crop";
    const scaled = exact(
      scale(source, fit === "scale-up" ? Math.max(1, factor) : bound),
      box,
      bound === factor,
    );
    return isPartial
      ? { ...plain(scaled), warning: `${fit} fit mode needs both width and height` }
      : plain(scaled);
  }
  const full = { width, height };
  const inside = Math.min(width / source.width, height / source.height);
  const outside = Math.max(width / source.width, height / source.height);
  switch (fit) {
    case "scale-down":
      return plain(scale(source, Math.min(inside, 1)));
    case "contain":
      return plain(scale(source, inside));
    case "scale-up":
      return plain(scale(source, Math.max(1, inside)));
    case "squeeze":
      return plain(full);
    case "cover":
      return cut(source, outside, full);
    case "crop":
      return source.width >= width && source.height >= height
        ? cut(source, outside, full)
        : cut(source, 1, { width: Math.min(width, source.width), height: Math.min(height, source.height) });
    case "aspect-crop": {
      if (outside <= 1) return cut(source, outside, full);
      const ratio = width / height;
      return cut(source, 1, {
        width: Math.min(source.width, round(source.height * ratio)),
        height: Math.min(source.height, round(source.width / ratio)),
      });
    }
    case "pad": {
      const scaled = scale(source, inside);
      const size = { width: Math.min(width, scaled.width), height: Math.min(height, scaled.height) };
      const canvas = {
        ...full,
        left: Math.floor((width - size.width) / 2),
        top: Math.floor((height - size.height) / 2),
      };
      return { scaled: size, crop: undefined, canvas, output: full };
    }
  }
}

const plain = (size: Size): Layout => ({ scaled: size, crop: undefined, canvas: undefined, output: size });

/** Requested sides are exact, despite rounding. */
function exact(size: Size, box: Partial<Size>, isBound: boolean): Size {
  return isBound ? { width: box.width ?? size.width, height: box.height ?? size.height } : size;
}

function cut(source: Size, factor: number, box: Size): Layout {
  const ideal = scale(source, factor);
  const scaled = { width: Math.max(box.width, ideal.width), height: Math.max(box.height, ideal.height) };
  const isWhole = scaled.width === box.width && scaled.height === box.height;
  return { scaled, crop: isWhole ? undefined : box, canvas: undefined, output: box };
}

/** The position of the crop in the scaled image. `focus` replaces a content-based gravity. */
export function cropBox(
  scaled: Size,
  crop: Size,
  gravity: Gravity | undefined,
  focus: Focus | undefined,
): Box {
  const point =
    typeof gravity === "object"
      ? gravity
      : gravity !== undefined && focus !== undefined
        ? { ...focus, mode: "box-center" as const }
        : { x: 0.5, y: 0.5, mode: "remainder" as const };
  const offset = (whole: number, part: number, at: number): number =>
    point.mode === "remainder"
      ? Math.round((whole - part) * at)
      : Math.min(whole - part, Math.max(0, Math.round(whole * at - part / 2)));
  return {
    left: offset(scaled.width, crop.width, point.x),
    top: offset(scaled.height, crop.height, point.y),
    ...crop,
  };
}

/** Whether placing the crop needs the content of the picture. */
export const needsFocus = (
  found: Layout,
  gravity: Gravity | undefined,
): gravity is "auto" | "face" | "entropy" => found.crop !== undefined && typeof gravity === "string";

export const turned = (size: Size, rotate: number): Size =>
  rotate % 180 === 0 ? size : { width: size.height, height: size.width };

/** Converts a box after `flip` and `rotate` to coordinates before them. `size` is the image before. */
export function beforeTurn(box: Box, size: Size, flip: "h" | "v" | "hv" | undefined, rotate: number): Box {
  let { left, top, width, height } = box;
  if (rotate === 90) [left, top, width, height] = [top, size.height - left - width, height, width];
  else if (rotate === 180) [left, top] = [size.width - left - width, size.height - top - height];
  else if (rotate === 270) [left, top, width, height] = [size.width - top - height, left, height, width];
  if (flip === "h" || flip === "hv") left = size.width - left - width;
  if (flip === "v" || flip === "hv") top = size.height - top - height;
  return { left, top, width, height };
}
