import { isUtf8 } from "node:buffer";
import { readFile, stat } from "node:fs/promises";
import sharp, { type Sharp, type SharpOptions } from "sharp";
import { exifRights } from "../input/exif.ts";
import { turned, type Size } from "../recipe/geometry.ts";
import { contentTypes, imageLimits, type Focus, type Probe } from "../image.ts";
import type { Output } from "../recipe/recipe.ts";
import { sanitizeSvg } from "../svg/sanitize.ts";
import { MalformedXml } from "../svg/xml.ts";
import { Canvas, type CanvasSource } from "./canvas.ts";
import { draw } from "./draw.ts";
import type { ImageJob, Picture, ImageResult, TransformStep } from "./job.ts";
import { transform } from "./transform.ts";

sharp.concurrency(1); // one thread per job: as many jobs run as there are cores
sharp.cache(false);
// libvips decodes only the formats that are unblocked here, even if a file claims another one. It reads PNG
// from memory only for our own intermediate pictures.
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

/** The result: its bytes, or its JSON description. */
export type Made = Omit<ImageResult, "bytes" | "sizeBytes"> & { bytes: Buffer };

/** Decodes a picture, runs its steps in order, and encodes the result. */
export async function run({ picture, output, timeLimitSeconds }: ImageJob): Promise<Made> {
  if (output.format === "svg") return sanitized(picture);
  const deadline = performance.now() + timeLimitSeconds * 1000;
  const opened = await open(picture, output, deadline);
  const { canvas, focus } = await runSteps(opened, picture);
  if (output.format === "json") return describe(opened, canvas);
  const encoded = encode(canvas, output, opened, picture.steps.every(keepsColors));
  const { data, info } = await encoded.toBuffer({ resolveWithObject: true });
  return { bytes: data, width: info.width, height: info.pageHeight ?? info.height, focus };
}

/** An SVG is sanitized as text and never rasterized. */
async function sanitized({ path, probe: { width, height } }: Picture): Promise<Made> {
  const bytes = await readFile(path);
  if (!isUtf8(bytes)) throw new MalformedXml("it is not UTF-8");
  return { bytes: Buffer.from(sanitizeSvg(bytes.toString())), width, height, focus: null };
}

async function open(
  { path, intermediateCopy, probe }: Picture,
  { isAnimated, metadata }: Pick<Output, "isAnimated" | "metadata">,
  deadline: number,
): Promise<CanvasSource> {
  const options: SharpOptions = {
    limitInputPixels: imageLimits.pixelsMax,
    failOn: "error",
    sequentialRead: true,
    animated: isAnimated,
  };
  if (probe.format === "avif") sharp.unblock({ operation: ["VipsForeignLoadHeifFile"] });
  // Everything about a still JPEG was read at its upload, and an SVG has nothing more.
  const isKnown = (probe.format === "jpeg" && metadata !== "keep") || probe.format === "svg";
  const found = isKnown
    ? { ...probe, exif: undefined, pageHeight: undefined, pages: 1, delay: undefined, loop: undefined }
    : await sharp(path, options).metadata();
  const size = { width: found.width, height: found.pageHeight ?? found.height };
  const frames = isAnimated ? (found.pages ?? 1) : 1;
  if (isLargerThan(probe, size, frames)) throw new Error("the picture is larger than its header says");
  const isTurned = (found.orientation ?? 1) >= 5;
  return {
    path: intermediateCopy ?? path,
    options,
    deadline,
    size: isTurned ? turned(size, 90) : size,
    frames,
    // The file may contain longer delays than can be written.
    delay: found.delay?.map((ms) => Math.min(ms, 65_535)),
    loop: found.loop === undefined ? undefined : Math.min(found.loop, 65_535),
    format: probe.format,
    rights: found.exif === undefined ? probe.rights : exifRights(found.exif),
    isExifKept: metadata === "keep" && found.exif !== undefined,
  };
}

/**
 * Whether the decoder finds more pixels than the header that the limits and the memory of the job were decided by. A frame
 * that is cut off may count.
 */
const isLargerThan = ({ width, height, frames }: Probe, size: Size, found: number): boolean =>
  size.width * size.height > width * height || found > frames + 1;

async function runSteps(
  source: CanvasSource,
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

async function overlayOf(
  { overlay }: Extract<TransformStep, { kind: "draw" }>,
  base: CanvasSource,
): Promise<Canvas> {
  const still = { isAnimated: false, metadata: "none" } as const;
  const source = await open(overlay, still, base.deadline);
  return (await runSteps(source, overlay)).canvas;
}

const geometry = new Set(["width", "height", "fit", "gravity", "zoom", "rotate", "flip", "trim"]);

/** Whether the palette of a GIF still fits: a step that adds colours needs a new one. */
function keepsColors(step: TransformStep): boolean {
  if (step.kind === "draw" || step.transform.fit === "pad") return false;
  return Object.keys(step.transform).every((name) => geometry.has(name));
}

/** AVIF reaches the same visual quality with a lower value. */
const avifQuality = (quality: number): number => (quality === 100 ? 100 : Math.max(1, quality - 15));

function encode(canvas: Canvas, output: Output, source: CanvasSource, isPaletteKept: boolean): Sharp {
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
      // The default effort of libvips for palettes takes seconds.
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

/** The public `format=json` response. */
async function describe(source: CanvasSource, canvas: Canvas): Promise<Made> {
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
