import type { Focus } from "../image.ts";

/** Salience below this is noise; squared distance in the colour space. */
const noise = 1;

/**
 * The most salient point: the one that differs most from its surround. The surround of a point is the largest
 * part of the picture with the point in its middle (maximum symmetric surround, Achanta and Süsstrunk 2010).
 * So the middle of a large object is as salient as its edges, and a background that reaches the border is
 * not.
 */
export function mostSalient(rgba: Uint8Array, width: number, height: number): Focus {
  const colors = labOf(rgba);
  const sums = integral(colors, width, height, parts);
  const salience = new Float64Array(width * height);
  const mean = new Float64Array(parts);
  for (let y = 0; y < height; y++) {
    const dy = Math.min(y, height - 1 - y);
    for (let x = 0; x < width; x++) {
      const dx = Math.min(x, width - 1 - x);
      sumOf(sums, width, parts, { left: x - dx, top: y - dy, right: x + dx + 1, bottom: y + dy + 1 }, mean);
      const area = (2 * dx + 1) * (2 * dy + 1);
      let distance = 0;
      for (let part = 0; part < parts; part++)
        distance += (mean[part]! / area - colors[(y * width + x) * parts + part]!) ** 2;
      salience[y * width + x] = distance;
    }
  }
  return peak(salience, width, height);
}

/** The centre of mass of the most salient window, which is a quarter of the shorter side wide. */
function peak(salience: Float64Array, width: number, height: number): Focus {
  const sums = integral(salience, width, height, 1);
  const reach = Math.max(1, Math.round(Math.min(width, height) / 8));
  const sum = new Float64Array(1);
  let most = noise * (2 * reach + 1) ** 2;
  let best: Window | undefined;
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++) {
      const window = {
        left: Math.max(0, x - reach),
        top: Math.max(0, y - reach),
        right: Math.min(width, x + reach + 1),
        bottom: Math.min(height, y + reach + 1),
      };
      sumOf(sums, width, 1, window, sum);
      if (sum[0]! <= most) continue;
      most = sum[0]!;
      best = window;
    }
  if (best === undefined) return { x: 0.5, y: 0.5 };
  let [across, down] = [0, 0];
  for (let y = best.top; y < best.bottom; y++)
    for (let x = best.left; x < best.right; x++) {
      across += salience[y * width + x]! * (x + 0.5);
      down += salience[y * width + x]! * (y + 0.5);
    }
  return { x: across / most / width, y: down / most / height };
}

interface Window {
  left: number;
  top: number;
  /** Exclusive. */
  right: number;
  bottom: number;
}

/** Integral image: the sum over any window takes four lookups. */
function integral(values: Float64Array, width: number, height: number, count: number): Float64Array {
  const row = (width + 1) * count;
  const sums = new Float64Array(row * (height + 1));
  const line = new Float64Array(count);
  for (let y = 0; y < height; y++) {
    line.fill(0);
    for (let x = 0; x < width; x++)
      for (let part = 0; part < count; part++) {
        line[part]! += values[(y * width + x) * count + part]!;
        const at = (y + 1) * row + (x + 1) * count + part;
        sums[at] = sums[at - row]! + line[part]!;
      }
  }
  return sums;
}

function sumOf(
  sums: Float64Array,
  width: number,
  count: number,
  { left, top, right, bottom }: Window,
  into: Float64Array,
): void {
  const row = (width + 1) * count;
  for (let part = 0; part < count; part++)
    into[part] =
      sums[bottom * row + right * count + part]! -
      sums[top * row + right * count + part]! -
      sums[bottom * row + left * count + part]! +
      sums[top * row + left * count + part]!;
}

/** L, a, b and alpha. Transparent pixels have no colour, so opaque pixels beside them are salient. */
const parts = 4;

const linear = Float64Array.from({ length: 256 }, (_, value) => {
  const share = value / 255;
  return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
});

/** CIE L*a*b* of sRGB, under D65. */
function labOf(rgba: Uint8Array): Float64Array {
  const lab = new Float64Array(rgba.length);
  for (let at = 0; at < rgba.length; at += parts) {
    const [r, g, b] = [linear[rgba[at]!]!, linear[rgba[at + 1]!]!, linear[rgba[at + 2]!]!];
    const x = curve((0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505);
    const y = curve(0.2126 * r + 0.7152 * g + 0.0722 * b);
    const z = curve((0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089);
    const alpha = rgba[at + 3]! / 255;
    lab[at] = alpha * (116 * y - 16);
    lab[at + 1] = alpha * 500 * (x - y);
    lab[at + 2] = alpha * 200 * (y - z);
    lab[at + 3] = alpha * 100;
  }
  return lab;
}

const curve = (value: number): number =>
  value > 216 / 24_389 ? Math.cbrt(value) : ((24_389 / 27) * value + 16) / 116;
