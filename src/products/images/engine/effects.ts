import type { Transform } from "../recipe/options.ts";
import { fillOf, fromPixels, toPixels, type Canvas, type Pixels } from "./canvas.ts";

/** Applies colour changes and the border to an image of its final size. */
export async function applyEffects(canvas: Canvas, options: Transform): Promise<Canvas> {
  let next = canvas;
  if (options.background !== undefined) next = await onBackground(next, options.background);
  const table = tableOf(options);
  if (table !== undefined) next = await next.eachFrame(async (frame) => mapColors(frame, table));
  const { saturation, sharpen, blur, border } = options;
  if (saturation !== undefined) next = await next.eachFrame(async (frame) => saturate(frame, saturation));
  if (sharpen !== undefined)
    next = await next.eachFrame((frame) =>
      toPixels(fromPixels(frame).sharpen({ sigma: 1, m1: sharpen / 2, m2: sharpen })),
    );
  if (blur !== undefined) next = await next.eachFrame((frame) => blurred(frame, blur / 2));
  if (border !== undefined) {
    const { color, ...sides } = border;
    next = await next.extend(sides, fillOf(color));
  }
  return next;
}

async function onBackground(canvas: Canvas, background: string): Promise<Canvas> {
  const fill = fillOf(background);
  return canvas.eachFrame(async (frame) => {
    if (frame.channels === 1 || frame.channels === 3) return frame;
    const image = fromPixels(frame);
    if (fill.alpha === 1) return toPixels(image.flatten({ background: fill }));
    const { width, height } = frame;
    const below = { create: { width, height, channels: 4 as const, background: fill } };
    return toPixels(image.composite([{ input: below, blend: "dest-over" }]));
  });
}

/** Lookup table for brightness, contrast and gamma of one channel. */
function tableOf({ brightness, contrast, gamma }: Transform): Uint8Array | undefined {
  if (brightness === undefined && contrast === undefined && gamma === undefined) return undefined;
  const clamp = (value: number): number => Math.min(255, Math.max(0, value));
  return Uint8Array.from({ length: 256 }, (_, value) => {
    const bright = clamp(value * (brightness ?? 1));
    const contrasted = clamp(128 + (bright - 128) * (contrast ?? 1));
    return Math.round(255 * (contrasted / 255) ** (1 / (gamma ?? 1)));
  });
}

const colorChannels = ({ channels }: Pixels): number => (channels <= 2 ? 1 : 3);

function mapColors(frame: Pixels, table: Uint8Array): Pixels {
  const { data, channels } = frame;
  const colors = colorChannels(frame);
  for (let at = 0; at < data.length; at += channels)
    for (let channel = 0; channel < colors; channel++) data[at + channel] = table[data[at + channel]!]!;
  return frame;
}

/** Moves each colour away from its grey, or towards it. */
function saturate(frame: Pixels, saturation: number): Pixels {
  const { data, channels } = frame;
  if (channels < 3) return frame;
  const clamp = (value: number): number => Math.min(255, Math.max(0, Math.round(value)));
  for (let at = 0; at < data.length; at += channels) {
    const [r, g, b] = [data[at]!, data[at + 1]!, data[at + 2]!];
    const grey = 0.2126 * r + 0.7152 * g + 0.0722 * b;
    data[at] = clamp(grey + (r - grey) * saturation);
    data[at + 1] = clamp(grey + (g - grey) * saturation);
    data[at + 2] = clamp(grey + (b - grey) * saturation);
  }
  return frame;
}

/** Larger sigmas blur a smaller image and enlarge it again: the result looks the same and takes less time. */
const sigmaMax = 8;

async function blurred(frame: Pixels, sigma: number): Promise<Pixels> {
  if (sigma < 0.3) return frame;
  const image = fromPixels(frame);
  if (sigma <= sigmaMax) return toPixels(image.blur(sigma));
  const { width, height } = frame;
  const factor = sigma / sigmaMax;
  const smaller = {
    width: Math.max(1, Math.round(width / factor)),
    height: Math.max(1, Math.round(height / factor)),
  };
  const small = await toPixels(
    fromPixels(await toPixels(image.resize({ ...smaller, fit: "fill" }))).blur(sigmaMax),
  );
  return toPixels(fromPixels(small).resize({ width, height, fit: "fill", kernel: "cubic" }));
}
