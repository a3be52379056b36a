import { fromPixels, toPixels, type Canvas, type Pixels } from "./canvas.ts";
import type { DrawOptions } from "./job.ts";

const blends = { over: "over", in: "in", atop: "atop", out: "out", xor: "xor", lighter: "add" } as const;

/** Draws one picture onto another, whose size stays; overhanging parts are cut off. */
export async function draw(base: Canvas, overlay: Canvas, options: DrawOptions): Promise<Canvas> {
  const picture = await toPixels(overlay.image.clone().ensureAlpha().toColourspace("srgb"));
  if (options.opacity !== undefined) fade(picture, options.opacity);
  const { size } = base;
  const left = position(options.left, options.right, size.width, picture.width);
  const top = position(options.top, options.bottom, size.height, picture.height);
  const layer = spread(picture, size, { left, top, repeat: options.repeat });
  const raw = { width: layer.width, height: layer.height, channels: layer.channels };
  const blend = blends[options.composite ?? "over"];
  return base.eachFrame((frame) =>
    toPixels(fromPixels(frame).composite([{ input: layer.data, raw, left: 0, top: 0, blend }])),
  );
}

/** Centred when neither side is set. */
function position(near: number | undefined, far: number | undefined, whole: number, part: number): number {
  if (near !== undefined) return near;
  return far === undefined ? Math.round((whole - part) / 2) : whole - part - far;
}

function fade({ data }: Pixels, opacity: number): void {
  for (let at = 3; at < data.length; at += 4) data[at] = Math.round(data[at]! * opacity);
}

/** A layer with the size of the base, which holds the picture once or repeated. */
function spread(
  picture: Pixels,
  { width, height }: { width: number; height: number },
  { left, top, repeat }: { left: number; top: number; repeat: DrawOptions["repeat"] },
): Pixels {
  const data = Buffer.alloc(width * height * 4);
  const isRepeated = { x: repeat === true || repeat === "x", y: repeat === true || repeat === "y" };
  const rowBytes = picture.width * 4;
  for (let y = 0; y < height; y++) {
    const sourceY = isRepeated.y ? modulo(y - top, picture.height) : y - top;
    if (sourceY < 0 || sourceY >= picture.height) continue;
    const source = picture.data.subarray(sourceY * rowBytes, (sourceY + 1) * rowBytes);
    const target = data.subarray(y * width * 4, (y + 1) * width * 4);
    if (isRepeated.x) fillRow(target, source, modulo(-left, picture.width) * 4);
    else if (left < 0) source.copy(target, 0, Math.min(-left, picture.width) * 4);
    else if (left < width) source.copy(target, left * 4);
  }
  return { data, width, height, channels: 4 };
}

/** Repeats a row from an offset on, doubling the filled part, since a row may be a single pixel. */
function fillRow(target: Buffer, source: Buffer, from: number): void {
  source.copy(target, 0, from);
  source.copy(target, Math.min(target.length, source.length - from), 0, from);
  for (let filled = source.length; filled < target.length; filled *= 2)
    target.copyWithin(filled, 0, Math.min(filled, target.length - filled));
}

const modulo = (value: number, by: number): number => ((value % by) + by) % by;
