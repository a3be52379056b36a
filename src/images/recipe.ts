import { hash } from "node:crypto";
import { parseColor } from "./color.ts";
import { imageErrors } from "./errors.ts";
import { layout, turned, type Size } from "./geometry.ts";
import { imageLimits, type Probe } from "./image.ts";
import { sidePixelsMax, type OutputFormat, type Transform } from "./options.ts";

/** How the pixels are written. */
export interface Output {
  /** `json` describes the image instead of showing it; only an SVG becomes one. */
  format: OutputFormat | "json" | "svg";
  /** 1 to 100; undefined writes PNG without a palette. */
  quality: number | undefined;
  /** JPEG: top to bottom instead of in passes. */
  isBaseline: boolean;
  /** JPEG: written as it comes, with the standard's own tables: a larger file, for which nothing has to be held. */
  isUnoptimized?: true;
  metadata: "none" | "copyright" | "keep";
  isAnimated: boolean;
}

/** Everything that decides the bytes of a result, in one spelling: equal requests have equal recipes. */
export interface Recipe {
  /** In pixels: `dpr` is multiplied in, and what changes nothing is left out. */
  transform: Transform;
  output: Output;
}

export interface Planned {
  recipe: Recipe;
  /** Of the result, as far as it is known before the picture is looked at. */
  size: Size;
  warnings: string[];
  /** The animation is too large to transform: it is delivered as it is. */
  isUntransformed: boolean;
}

export interface Accepted {
  avif: boolean;
  webp: boolean;
}

const defaultQuality = 85;
/** Larger results take long to write as AVIF, and are written as WebP. */
const avifPixelsMax = 4_000_000;

/** Raised when the engine writes other bytes for the same recipe: it is part of every result's key. */
export const engineVersion = "sharp 0.35.5, 2";

/** Turns what was asked for, and what the client accepts, into one recipe. */
export function plan(asked: Transform, probe: Probe, accepted: Accepted): Planned {
  const warnings: string[] = [];
  if (probe.format === "svg") return planSvg(asked, probe);
  const { transform, size } = resolve(asked, uprightSize(probe), warnings);
  const { output, isUntransformed } = planOutput(asked, probe, { accepted, size, warnings });
  return { recipe: { transform, output }, size, warnings, isUntransformed };
}

/** An SVG is never made of pixels: whoever shows it makes it as large as he likes. */
function planSvg(asked: Transform, { width, height }: Probe): Planned {
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

/** As what a picture is written, whose size is known. */
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

/** As a viewer shows it. */
export const uprightSize = ({ width, height, orientation }: Probe): Size =>
  orientation >= 5 ? { width: height, height: width } : { width, height };

/**
 * What everything that is made from an image is filed under: this upload of it, so that nobody can tell from a hit that
 * another account has the same picture, nor take away what was made for it.
 */
export const resultFolder = (blobKey: string): string => hash("sha256", blobKey);

/** The name of a result: of these bytes made by this recipe, whose fields are always written in the same order. */
export const resultKey = (sha256: string, recipe: Recipe): string =>
  hash("sha256", `${engineVersion}\n${sha256}\n${JSON.stringify(recipe)}`).slice(0, 32);

/** Drops what changes nothing for a picture of this size, and multiplies `dpr` in. */
export function resolve(
  asked: Transform,
  upright: Size,
  warnings: string[],
): { transform: Transform; size: Size } {
  const dpr = asked.dpr ?? 1;
  const pixels = (value: number): number => Math.max(1, Math.round(value * dpr));
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

/** Throws for a result that is too large, or much larger than what it is made of. */
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

/** What is left of an upright image. A border is found only in the picture, and counts as nothing here. */
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

/** Tiny pictures gain nothing from passes, huge ones cost too much memory. */
function isBaseline(asked: Transform, { width, height }: Size): boolean {
  const isTiny = width < 50 && height < 50;
  const isHuge = width > 3000 && height > 3000;
  return asked.format === "baseline-jpeg" || isTiny || isHuge || asked.compression === "fast";
}
