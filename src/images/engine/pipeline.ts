import { isUtf8 } from "node:buffer";
import { readFile, stat } from "node:fs/promises";
import sharp, { type Sharp, type SharpOptions } from "sharp";
import { exifRights } from "../exif.ts";
import { beforeTurn, cropBox, layout, needsFocus, turned, type Box, type Size } from "../geometry.ts";
import { contentTypes, imageLimits, type Focus } from "../image.ts";
import type { Transform } from "../options.ts";
import { checkResult, trimmedSize, type Output } from "../recipe.ts";
import { sanitizeSvg } from "../svg/sanitize.ts";
import { MalformedXml } from "../svg/xml.ts";
import { Canvas, fillOf, type Source } from "./canvas.ts";
import { draw } from "./draw.ts";
import { applyEffects } from "./effects.ts";
import { findFocus } from "./focus.ts";
import { InvalidForImage } from "./invalid.ts";
import type { Job, Picture, Result, Step } from "./job.ts";
import { findBorder } from "./trim.ts";

sharp.concurrency(1); // one thread a job: as many jobs run as there are cores
sharp.cache(false);
// Only what is accepted is ever read, whatever the bytes claim to be. The buffer of PNG is for our own intermediates.
sharp.block({ operation: ["VipsForeignLoad"] });
sharp.unblock({
  operation: [
    "VipsForeignLoadJpegFile",
    "VipsForeignLoadPngFile",
    "VipsForeignLoadPngBuffer",
    "VipsForeignLoadNsgifFile",
    "VipsForeignLoadWebpFile",
  ],
});

/** What comes out: its bytes, or its description. */
export type Made = Omit<Result, "bytes" | "sizeBytes"> & { bytes: Buffer };

/** Decodes a picture, runs its steps in their order, and encodes the result. */
export async function run({ picture, output, timeLimitSeconds }: Job): Promise<Made> {
  if (output.format === "svg") return sanitized(picture);
  const deadline = performance.now() + timeLimitSeconds * 1000;
  const opened = await open(picture, output, deadline);
  const { canvas, focus } = await runSteps(opened, picture);
  if (output.format === "json") return describe(opened, canvas);
  const encoded = encode(canvas, output, opened, picture.steps.every(keepsColors));
  const { data, info } = await encoded.toBuffer({ resolveWithObject: true });
  return { bytes: data, width: info.width, height: info.pageHeight ?? info.height, focus };
}

/** Sizes are in its text: it is written without pixels. */
async function sanitized({ path, probe: { width, height } }: Picture): Promise<Made> {
  const bytes = await readFile(path);
  if (!isUtf8(bytes)) throw new MalformedXml("it is not UTF-8");
  return { bytes: Buffer.from(sanitizeSvg(bytes.toString())), width, height, focus: null };
}

async function open(
  { path, mezzanine, probe }: Picture,
  { isAnimated, metadata }: Pick<Output, "isAnimated" | "metadata">,
  deadline: number,
): Promise<Source> {
  const options: SharpOptions = {
    limitInputPixels: imageLimits.pixelsMax,
    failOn: "error",
    sequentialRead: true,
    animated: isAnimated,
  };
  if (probe.format === "avif") sharp.unblock({ operation: ["VipsForeignLoadHeifFile"] });
  // Of a still JPEG everything is known since its upload, of an SVG all there is.
  const isKnown = (probe.format === "jpeg" && metadata !== "keep") || probe.format === "svg";
  const found = isKnown
    ? { ...probe, exif: undefined, pageHeight: undefined, pages: 1, delay: undefined, loop: undefined }
    : await sharp(path, options).metadata();
  const size = { width: found.width, height: found.pageHeight ?? found.height };
  const isTurned = (found.orientation ?? 1) >= 5;
  return {
    path: mezzanine ?? path,
    options,
    deadline,
    size: isTurned ? turned(size, 90) : size,
    frames: isAnimated ? (found.pages ?? 1) : 1,
    // A file may say more than can be written.
    delay: found.delay?.map((ms) => Math.min(ms, 65_535)),
    loop: found.loop === undefined ? undefined : Math.min(found.loop, 65_535),
    format: probe.format,
    rights: found.exif === undefined ? probe.rights : exifRights(found.exif),
    isExifKept: metadata === "keep" && found.exif !== undefined,
  };
}

async function runSteps(
  source: Source,
  { steps, focus }: Picture,
): Promise<{ canvas: Canvas; focus: Focus | null }> {
  let canvas = Canvas.of(source);
  let found: Focus | null = null;
  for (const [index, step] of steps.entries()) {
    if (step.kind === "draw") {
      canvas = await draw(canvas, await overlayOf(step, source), step.options);
    } else {
      const done = await transform(canvas, step.transform, index === 0 ? focus : null);
      canvas = done.canvas;
      if (index === 0) found = done.focus;
    }
  }
  return { canvas, focus: found };
}

async function overlayOf({ overlay }: Extract<Step, { kind: "draw" }>, base: Source): Promise<Canvas> {
  const still = { isAnimated: false, metadata: "none" } as const;
  const source = await open(overlay, still, base.deadline);
  return (await runSteps(source, overlay)).canvas;
}

/** One transform, in the order that is documented: trim, flip, rotate, resize, background, colours, sharpen, blur, border. */
async function transform(
  canvas: Canvas,
  options: Transform,
  known: Focus | null,
): Promise<{ canvas: Canvas; focus: Focus | null }> {
  const region = await trimRegion(canvas, options);
  const { flip, rotate = 0 } = options;
  const before: Size = region ?? canvas.size;
  const found = layout(
    turned(before, rotate),
    options as Partial<Size>, // "auto" was decided before
    options.fit ?? "scale-down",
  );
  checkSize(found.output, canvas.size);
  const scaledBefore = turned(found.scaled, rotate);
  let next = canvas;
  if (region !== undefined) next = await next.extract(region);
  next = await next.resize(scaledBefore);
  let focus: Focus | null = null;
  if (found.crop !== undefined) {
    let point = known ?? undefined;
    if (needsFocus(found, options.gravity) && point === undefined) {
      next = await next.settle();
      point = await findFocus(next, options.gravity);
      // Only what holds for the whole picture is worth keeping.
      if (options.gravity === "auto" && region === undefined) focus = point;
    }
    const turnedPoint = point && turnPoint(point, flip, rotate);
    const box = cropBox(
      found.scaled,
      zoomed(found.crop, found.scaled, options, turnedPoint),
      options.gravity,
      turnedPoint,
    );
    next = await next.extract(beforeTurn(box, scaledBefore, flip, rotate));
    if (box.width !== found.crop.width) next = await next.resize(turned(found.crop, rotate));
  }
  next = await next.turn(flip, rotate);
  if (found.canvas !== undefined) {
    const { width, height, left, top } = found.canvas;
    next = await next.extend(
      {
        left,
        top,
        right: width - left - found.scaled.width,
        bottom: height - top - found.scaled.height,
      },
      fillOf(options.background ?? "#ffffffff"),
    );
  }
  return { canvas: await applyEffects(next, options), focus };
}

function checkSize(size: Size, source: Size): void {
  try {
    checkResult(size, source);
  } catch (error) {
    throw new InvalidForImage((error as Error).message.replace(/^Invalid transform: /, ""));
  }
}

async function trimRegion(canvas: Canvas, { trim }: Transform): Promise<Box | undefined> {
  if (trim === undefined) return undefined;
  if ("border" in trim) return findBorder(canvas, trim);
  try {
    return { left: trim.left, top: trim.top, ...trimmedSize(canvas.size, trim) };
  } catch (error) {
    throw new InvalidForImage((error as Error).message.replace(/^Invalid transform: /, ""));
  }
}

/** A focus of the upright picture, in the picture after its turn. */
function turnPoint({ x, y }: Focus, flip: Transform["flip"], rotate: number): Focus {
  if (flip === "h" || flip === "hv") x = 1 - x;
  if (flip === "v" || flip === "hv") y = 1 - y;
  if (rotate === 90) return { x: 1 - y, y: x };
  if (rotate === 180) return { x: 1 - x, y: 1 - y };
  return rotate === 270 ? { x: y, y: 1 - x } : { x, y };
}

/** The crop that is nearer to a face: as large as the whole at 0, half of it at 1. */
function zoomed(crop: Size, scaled: Size, { gravity, zoom }: Transform, point: Focus | undefined): Size {
  if (gravity !== "face" || zoom === undefined || point === undefined) return crop;
  const factor = 1 - zoom / 2;
  return {
    width: Math.min(scaled.width, Math.max(1, Math.round(crop.width * factor))),
    height: Math.min(scaled.height, Math.max(1, Math.round(crop.height * factor))),
  };
}

const geometry = new Set(["width", "height", "fit", "gravity", "zoom", "rotate", "flip", "trim"]);

/** Whether a GIF's own palette still fits: a step that brings colours of its own needs another. */
function keepsColors(step: Step): boolean {
  if (step.kind === "draw" || step.transform.fit === "pad") return false;
  return Object.keys(step.transform).every((name) => geometry.has(name));
}

/** AVIF looks as good with fewer points than the others. */
const avifQuality = (quality: number): number => (quality === 100 ? 100 : Math.max(1, quality - 15));

function encode(canvas: Canvas, output: Output, source: Source, isPaletteKept: boolean): Sharp {
  const quality = output.quality ?? 85;
  const animation = {
    ...(source.loop === undefined ? {} : { loop: source.loop }),
    ...(source.delay === undefined || !output.isAnimated ? {} : { delay: source.delay }),
  };
  let image = canvas.image;
  if (output.metadata === "keep") image = image.keepExif();
  if (output.metadata === "copyright" && source.rights !== undefined && Object.keys(source.rights).length > 0)
    image = image.withExif({ IFD0: { ...source.rights } });
  switch (output.format) {
    case "jpeg":
      return image.flatten({ background: "#fff" }).jpeg({
        quality,
        progressive: !output.isBaseline,
        optimiseCoding: output.isUnoptimized !== true,
        chromaSubsampling: "4:2:0",
      });
    case "webp":
      return image.webp({ quality, effort: 2, lossless: quality === 100, ...animation });
    case "avif":
      return image.avif({ quality: avifQuality(quality), effort: 0, chromaSubsampling: "4:2:0" });
    case "png":
      // The library's own effort for palettes takes seconds.
      return output.quality === undefined
        ? image.png({ compressionLevel: 6 })
        : image.png({ palette: true, quality, effort: 1 });
    case "gif":
      return image.gif({ effort: 1, reuse: isPaletteKept, ...animation });
    case "json":
    case "svg":
      throw new TypeError(`${output.format} is not encoded`);
  }
}

/** Shape of the public `format=json`. */
async function describe(source: Source, canvas: Canvas): Promise<Made> {
  const { width, height } = canvas.size;
  const description = {
    width,
    height,
    original: {
      file_size: (await stat(source.path)).size,
      width: source.size.width,
      height: source.size.height,
      format: contentTypes[source.format],
    },
  };
  return { bytes: Buffer.from(JSON.stringify(description)), width, height, focus: null };
}
