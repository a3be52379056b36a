import { hash } from "node:crypto";
import { parseColor } from "./color.ts";
import { imageErrors } from "../errors.ts";
import { layout, turned, type Size } from "./geometry.ts";
import { imageLimits, type Probe } from "../image.ts";
import { sidePixelsMax, type OutputFormat, type Transform } from "./options.ts";

/** The encoding of the result. */
export interface Output {
  /** `json` describes the image instead of encoding it; `svg` is only for SVG sources. */
  format: OutputFormat | "json" | "svg";
  /** 1 to 100; undefined writes PNG without a palette. */
  quality: number | undefined;
  /** JPEG: baseline instead of progressive. */
  isBaseline: boolean;
  /** JPEG: standard Huffman tables, for a larger file that needs no buffering. */
  isUnoptimized?: true;
  metadata: "none" | "copyright" | "keep";
  isAnimated: boolean;
}

/** Everything that determines the bytes of a result, in canonical form: equal requests have equal recipes. */
export interface Recipe {
  /** In pixels, with `dpr` applied and options without effect removed. */
  transform: Transform;
  output: Output;
}

export interface PlannedResult {
  recipe: Recipe;
  /** Size of the result, as far as the header determines it. */
  size: Size;
  warnings: string[];
  /** The animation is too large to transform and is delivered unchanged. */
  isUntransformed: boolean;
}

export interface Accepted {
  avif: boolean;
  webp: boolean;
}

const defaultQuality = 85;
/** Larger results take long to encode as AVIF, and are encoded as WebP. */
const avifPixelsMax = 4_000_000;

/** Part of every result's key. Change it when the engine writes other bytes for the same recipe. */
export const engineVersion = "sharp 0.35.5, 2";

/** Combines the requested transform and the client's accepted formats into one recipe. */
export function planResult(asked: Transform, probe: Probe, accepted: Accepted): PlannedResult {
  const warnings: string[] = [];
  if (probe.format === "svg") return planSvg(asked, probe);
  const { transform, size } = resolveTransform(asked, uprightSize(probe), warnings);
  const { output, isUntransformed } = planOutput(asked, probe, { accepted, size, warnings });
  return { recipe: { transform, output }, size, warnings, isUntransformed };
}

/** An SVG is never rasterized: browsers scale it to any size. */
function planSvg(asked: Transform, { width, height }: Probe): PlannedResult {
  const format = asked.format === "json" ? "json" : "svg";
  const output: Output = {
    format,
    quality: undefined,
    isBaseline: false,
    metadata: "none",
    isAnimated: false,
  };
  const isAsked = Object.keys(asked).some((name) => name !== "format") || (asked.format ?? "auto") !== "auto";
  return {
    recipe: { transform: {}, output },
    size: { width, height },
    warnings: isAsked && format === "svg" ? ["an SVG is delivered as it is: options have no effect"] : [],
    isUntransformed: false,
  };
}

/** The output format and options for a picture of a known size. */
export function planOutput(
  asked: Transform,
  probe: Probe,
  { accepted, size, warnings }: { accepted: Accepted; size: Size; warnings: string[] },
): { output: Output; isUntransformed: boolean } {
  const isMoving = probe.frames > 1 && asked.anim !== false;
  const format = outputFormat(asked, probe, { accepted, size, isMoving, warnings });
  const isAnimated = isMoving && (format === "webp" || format === "gif");
  const isUntransformed =
    isAnimated && probe.width * probe.height * probe.frames > imageLimits.animationPixelsMax;
  if (isUntransformed) warnings.push("the animation is too large to be transformed");
  const output: Output = {
    format,
    quality: outputQuality(asked, format),
    isBaseline: format === "jpeg" && isBaseline(asked, size),
    metadata: format === "json" ? "none" : (asked.metadata ?? (format === "jpeg" ? "copyright" : "none")),
    isAnimated,
  };
  return { output, isUntransformed };
}

/** The size with the EXIF orientation applied. */
export const uprightSize = ({ width, height, orientation }: Probe): Size =>
  orientation >= 5 ? { width: height, height: width } : { width, height };

/**
 * The folder of all results of one upload. It is derived from the upload and not from the bytes, so that a
 * cache hit does not reveal other accounts' pictures, and deleting an image does not delete their results.
 */
export const resultFolder = (blobKey: string): string => hash("sha256", blobKey);

/**
 * The name of a result: a hash of the source bytes and the recipe, whose fields are always in the same order.
 */
export const resultKey = (sha256: string, recipe: Recipe): string =>
  hash("sha256", `${engineVersion}\n${sha256}\n${JSON.stringify(recipe)}`).slice(0, 32);

/** Removes options without effect on a picture of this size, and applies `dpr`. */
export function resolveTransform(
  asked: Transform,
  upright: Size,
  warnings: string[],
): { transform: Transform; size: Size } {
  const dpr = asked.dpr ?? 1;
  const pixels = (value: number): number => {
    const found = Math.max(1, Math.round(value * dpr));
    if (found > sidePixelsMax)
      throw imageErrors.invalidTransform(
        `expected at most ${sidePixelsMax} pixels a side but ${value} with dpr ${dpr} is ${found}`,
      );
    return found;
  };
  const transform: Transform = {};
  if (typeof asked.width === "number") transform.width = pixels(asked.width);
  if (asked.height !== undefined) transform.height = pixels(asked.height);
  if (asked.trim !== undefined) transform.trim = scaleTrim(asked.trim, dpr);
  if (asked.rotate) transform.rotate = asked.rotate;
  if (asked.flip !== undefined) transform.flip = asked.flip;

  const fit = asked.fit ?? "scale-down";
  const isSized = transform.width !== undefined || transform.height !== undefined;
  if (isSized && fit !== "scale-down") transform.fit = fit;
  const source = turned(trimmedSize(upright, transform.trim), transform.rotate ?? 0);
  const found = layout(source, transform as Partial<Size>, fit);
  if (found.warning !== undefined) warnings.push(found.warning);
  if (asked.gravity !== undefined) {
    const isCropping = fit === "cover" || fit === "crop" || fit === "aspect-crop";
    if (!isCropping) warnings.push(`gravity has no effect with fit ${fit}`);
    else if (found.crop !== undefined || isBorderTrim(transform.trim)) {
      const { gravity } = asked;
      const isCentre = typeof gravity === "object" && gravity.x === 0.5 && gravity.y === 0.5;
      if (!isCentre) transform.gravity = gravity;
      if (gravity === "face" && asked.zoom) transform.zoom = asked.zoom;
    }
  }

  if (asked.background !== undefined) transform.background = asked.background;
  for (const name of ["brightness", "contrast", "gamma"] as const)
    if (asked[name] !== undefined && asked[name] !== 0 && asked[name] !== 1) transform[name] = asked[name];
  if (asked.saturation !== undefined && asked.saturation !== 1) transform.saturation = asked.saturation;
  if (asked.sharpen) transform.sharpen = asked.sharpen;
  if (asked.blur !== undefined) transform.blur = asked.blur;

  let size = found.output;
  if (asked.border !== undefined) {
    const { color, ...sides } = asked.border;
    const [top, right, bottom, left] = [sides.top, sides.right, sides.bottom, sides.left].map((side) =>
      Math.round(side * dpr),
    ) as [number, number, number, number];
    transform.border = { color, top, right, bottom, left };
    size = { width: size.width + left + right, height: size.height + top + bottom };
  }
  checkResult(size, upright);
  return { transform, size };
}

/** Throws for a result that is too large, or much larger than its source. */
export function checkResult(size: Size, source: Size): void {
  const { enlargedPixelsMax, pixelsMax } = imageLimits;
  const countMax = Math.min(pixelsMax, Math.max(enlargedPixelsMax, source.width * source.height));
  if (Math.max(size.width, size.height) > sidePixelsMax || size.width * size.height > countMax)
    throw imageErrors.invalidTransform(
      `expected a result with sides of at most ${sidePixelsMax} and at most ${countMax} pixels but it would have ${size.width}×${size.height}`,
    );
}

const isBorderTrim = (trim: Transform["trim"]): boolean => trim !== undefined && "border" in trim;

function scaleTrim(trim: NonNullable<Transform["trim"]>, dpr: number): NonNullable<Transform["trim"]> {
  if ("border" in trim) return trim;
  return Object.fromEntries(
    Object.entries(trim).map(([side, value]) => [side, Math.round((value as number) * dpr)]),
  ) as unknown as NonNullable<Transform["trim"]>;
}

/**
 * The size of an upright image after trimming. A border is only found in the pixels, so it counts as 0 here.
 */
export function trimmedSize(size: Size, trim: Transform["trim"]): Size {
  if (trim === undefined || "border" in trim) return size;
  const left =
    "width" in trim
      ? {
          width: Math.min(trim.width, size.width - trim.left),
          height: Math.min(trim.height, size.height - trim.top),
        }
      : { width: size.width - trim.left - trim.right, height: size.height - trim.top - trim.bottom };
  if (left.width < 1 || left.height < 1)
    throw imageErrors.invalidTransform(
      `trim leaves nothing of an image of ${size.width}×${size.height} pixels`,
    );
  return left;
}

interface Choice {
  accepted: Accepted;
  size: Size;
  isMoving: boolean;
  warnings: string[];
}

function outputFormat(asked: Transform, probe: Probe, choice: Choice): Output["format"] {
  const { accepted, size, isMoving, warnings } = choice;
  const isTransparent = probe.hasAlpha && !isOpaque(asked.background);
  if (asked.compression === "fast" && asked.format !== "json") return isTransparent ? "png" : "jpeg";
  const isSmall = size.width * size.height <= avifPixelsMax;
  switch (asked.format ?? "auto") {
    case "avif":
      if (isSmall) return "avif";
      warnings.push("image too large for AVIF");
      return "webp";
    case "baseline-jpeg":
    case "jpeg":
      return "jpeg";
    case "png-force":
    case "png":
      return "png";
    case "webp":
      return "webp";
    case "gif":
      return "gif";
    case "json":
      return "json";
    case "auto":
      if (accepted.avif && isSmall && !isMoving) return "avif";
      if (accepted.webp) return "webp";
      if (isMoving) return "gif";
      return isTransparent || probe.hasPalette ? "png" : "jpeg";
  }
}

const isOpaque = (background: string | undefined): boolean =>
  background !== undefined && parseColor(background)?.alpha === 1;

function outputQuality({ quality }: Transform, format: Output["format"]): number | undefined {
  if (format === "png") return quality;
  return format === "gif" || format === "json" ? undefined : (quality ?? defaultQuality);
}

/** Progressive encoding gains nothing for tiny pictures, and costs too much memory for huge ones. */
function isBaseline(asked: Transform, { width, height }: Size): boolean {
  const isTiny = width < 50 && height < 50;
  const isHuge = width > 3000 && height > 3000;
  return asked.format === "baseline-jpeg" || isTiny || isHuge || asked.compression === "fast";
}
