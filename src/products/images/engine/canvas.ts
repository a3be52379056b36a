import sharp, { type Sharp, type SharpOptions } from "sharp";
import { parseColor } from "../recipe/color.ts";
import { turned, type Box, type Size } from "../recipe/geometry.ts";
import type { Rights, SourceFormat } from "../image.ts";
import type { Sides, Transform } from "../recipe/options.ts";

/** An image file and its header. */
export interface CanvasSource {
  path: string;
  options: SharpOptions;
  /** Deadline of the job: `performance.now()`. */
  deadline: number;
  /** Of one frame, upright. */
  size: Size;
  frames: number;
  delay: number[] | undefined;
  loop: number | undefined;
  format: SourceFormat;
  rights: Rights | undefined;
  /** Whether the source has EXIF and the result must keep it. */
  isExifKept: boolean;
}

export interface Fill {
  r: number;
  g: number;
  b: number;
  alpha: number;
}
export const fillOf = (color: string): Fill => parseColor(color)!;

/** Pixels in memory. Frames of an animation are stacked vertically. */
export interface Pixels {
  data: Buffer;
  width: number;
  height: number;
  channels: 1 | 2 | 3 | 4;
}

/** The last pending operation of libvips, which runs operations in its own fixed order. */
type Stage = "decoded" | "extracted" | "resized" | "cut" | "extended";

/**
 * An image between transforms. Operations are collected into one libvips pass while its fixed order equals
 * the requested order. Otherwise the pixels are rendered and a new pass begins.
 */
export class Canvas {
  readonly image: Sharp;
  /** Of one frame. */
  readonly size: Size;
  readonly source: CanvasSource;
  readonly #stage: Stage;

  private constructor(image: Sharp, size: Size, source: CanvasSource, stage: Stage) {
    this.image = image;
    this.size = size;
    this.source = source;
    this.#stage = stage;
  }

  static of(source: CanvasSource): Canvas {
    const image = sharp(source.path, source.options)
      .timeout({ seconds: secondsLeft(source) })
      .toColourspace("srgb");
    // libvips does not rotate the frames of animations, and animations carry no orientation.
    return new Canvas(source.frames === 1 ? image.autoOrient() : image, source.size, source, "decoded");
  }

  async extract(box: Box): Promise<Canvas> {
    if (box.left === 0 && box.top === 0 && isSame(box, this.size)) return this;
    const { base, stage } = await this.#before(["decoded", "resized"]);
    const { left, top, width, height } = box;
    const next = stage === "resized" ? "cut" : "extracted";
    return new Canvas(base.extract({ left, top, width, height }), { width, height }, this.source, next);
  }

  async resize(size: Size): Promise<Canvas> {
    if (isSame(size, this.size)) return this;
    const { base } = await this.#before(["decoded", "extracted"]);
    return new Canvas(base.resize({ ...size, fit: "fill" }), size, this.source, "resized");
  }

  async extend(sides: Sides, fill: Fill): Promise<Canvas> {
    const { top, right, bottom, left } = sides;
    if (top + right + bottom + left === 0) return this;
    const { base } = await this.#before(["decoded", "extracted", "resized", "cut"]);
    const size = { width: this.size.width + left + right, height: this.size.height + top + bottom };
    return new Canvas(base.extend({ ...sides, background: fill }), size, this.source, "extended");
  }

  async turn(flip: Transform["flip"], rotate: number): Promise<Canvas> {
    if (flip === undefined && rotate === 0) return this;
    return this.eachFrame(
      async (pixels) => {
        let image = fromPixels(pixels);
        if (flip !== undefined) {
          image = image.flop(flip !== "v").flip(flip !== "h");
          if (rotate !== 0) image = fromPixels(await toPixels(image));
        }
        return toPixels(rotate === 0 ? image : image.rotate(rotate));
      },
      turned(this.size, rotate),
    );
  }

  /** Runs the pending operations. */
  async settle(): Promise<Canvas> {
    if (this.#keepsExif) {
      // Raw pixels cannot carry EXIF; an uncompressed PNG can.
      const png = await this.image.keepExif().png({ compressionLevel: 0 }).toBuffer();
      return this.#with(sharp(png), this.size);
    }
    const { data, width, height, channels } = await this.pixels();
    const pages = this.source.frames === 1 ? {} : { pageHeight: this.size.height };
    return this.#with(sharp(data, { raw: { width, height, channels, ...pages } }), this.size);
  }

  /** Changes the pixels of each frame separately. */
  async eachFrame(change: (frame: Pixels) => Promise<Pixels>, size = this.size): Promise<Canvas> {
    const whole = await this.pixels();
    const { frames } = this.source;
    const frameBytes = whole.data.length / frames;
    const changed: Pixels[] = [];
    for (let frame = 0; frame < frames; frame++) {
      const data = whole.data.subarray(frame * frameBytes, (frame + 1) * frameBytes);
      changed.push(await change({ ...whole, data, height: whole.height / frames }));
    }
    const { width, height, channels } = changed[0]!;
    const data = frames === 1 ? changed[0]!.data : Buffer.concat(changed.map((frame) => frame.data));
    const raw = { width, height: height * frames, channels, ...(frames === 1 ? {} : { pageHeight: height }) };
    const image = sharp(data, { raw });
    return this.#with(this.#keepsExif ? sharp(await withExifOf(image, this.source)) : image, size);
  }

  async pixels(): Promise<Pixels> {
    return toPixels(this.image.clone());
  }

  get #keepsExif(): boolean {
    return this.source.isExifKept && this.source.frames === 1;
  }

  #with(image: Sharp, size: Size): Canvas {
    return new Canvas(image.timeout({ seconds: secondsLeft(this.source) }), size, this.source, "decoded");
  }

  async #before(stages: readonly Stage[]): Promise<{ base: Sharp; stage: Stage }> {
    if (stages.includes(this.#stage)) return { base: this.image, stage: this.#stage };
    const settled = await this.settle();
    return { base: settled.image, stage: "decoded" };
  }
}

/** libvips takes whole seconds, counted from the start of each pass. */
const secondsLeft = ({ deadline }: CanvasSource): number =>
  Math.max(1, Math.ceil((deadline - performance.now()) / 1000));

const isSame = (a: Size, b: Size): boolean => a.width === b.width && a.height === b.height;

export const fromPixels = ({ data, width, height, channels }: Pixels): Sharp =>
  sharp(data, { raw: { width, height, channels } });

export async function toPixels(image: Sharp): Promise<Pixels> {
  const { data, info } = await image.toColourspace("srgb").raw().toBuffer({ resolveWithObject: true });
  return { data, width: info.width, height: info.height, channels: info.channels };
}

/** Restores the source's EXIF on raw pixels. */
async function withExifOf(image: Sharp, source: CanvasSource): Promise<Buffer> {
  const { data, info } = await image.png({ compressionLevel: 0 }).toBuffer({ resolveWithObject: true });
  const carrier = sharp(source.path, { ...source.options, animated: false })
    .autoOrient()
    .keepExif()
    .resize({ width: info.width, height: info.height, fit: "fill", kernel: "nearest" })
    .ensureAlpha()
    .composite([{ input: data, blend: "source" }]);
  return carrier.png({ compressionLevel: 0 }).toBuffer();
}
