import type { Probe, SourceFormat } from "../image.ts";
import type { Size } from "../recipe/geometry.ts";
import type { Recipe } from "../recipe/recipe.ts";

export interface Cost {
  /** CPU time on one core: an estimate from measurements, for the queue order and Retry-After. */
  cpuMs: number;
  memoryBytes: number;
}

/** Milliseconds per megapixel. */
const decodeMs: Record<SourceFormat, number> = { jpeg: 5, png: 18, webp: 35, gif: 10, avif: 60, svg: 0 };
const progressiveMs = 18;
const encodeMs = { jpeg: 30, webp: 80, avif: 140, png: 70, gif: 150, json: 0, svg: 0 };
const palettePngMs = 500;
const baseMemoryBytes = 24 * 1024 * 1024;

/** CPU time to decode all pixels of a file, in milliseconds. */
export function decodeCpuMs({ format, width, height, frames, isProgressive }: Probe): number {
  return ((width * height * frames) / 1e6) * (isProgressive ? progressiveMs : decodeMs[format]);
}

export function estimate(probe: Probe & { sizeBytes: number }, recipe: Recipe, size: Size): Cost {
  const { transform, output } = recipe;
  const frames = output.isAnimated ? probe.frames : 1;
  const sourceMegapixels = (probe.width * probe.height * frames) / 1e6;
  const resultMegapixels = (size.width * size.height * frames) / 1e6;
  const encode =
    output.format === "png" && output.quality !== undefined ? palettePngMs : encodeMs[output.format];
  const effects =
    (transform.blur === undefined ? 0 : 10 + transform.blur) + (transform.sharpen === undefined ? 0 : 60);
  // A progressive JPEG is held as coefficients, with two bytes for each of up to four colours, an animation as all of its
  // frames, an effect as raw pixels.
  const sourceBytes = probe.isProgressive
    ? 8
    : output.isAnimated
      ? 4
      : transform.trim === undefined
        ? 0.5
        : 4;
  // Bytes beyond the size of the pixels are metadata and profiles, of which several copies exist.
  const noteBytes = Math.max(0, probe.sizeBytes - 4 * probe.width * probe.height * probe.frames);
  return {
    cpuMs: 5 + decodeCpuMs({ ...probe, frames }) + resultMegapixels * (encode + effects),
    memoryBytes:
      baseMemoryBytes + 5 * noteBytes + sourceMegapixels * 1e6 * sourceBytes + resultMegapixels * 1e6 * 8,
  };
}
