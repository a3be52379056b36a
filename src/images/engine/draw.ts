import { fromPixels, toPixels, type Canvas, type Pixels } from "./canvas.ts";
import type { DrawOptions } from "./job.ts";

const blends = { over: "over", in: "in", atop: "atop", out: "out", xor: "xor", lighter: "add" } as const;

/** Puts one picture on another, whose size stays: what hangs over the edge is cut off. */
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

/** Centred where no side says otherwise. */
function position(near: number | undefined, far: number | undefined, whole: number, part: number): number {
  if (near !== undefined) return near;
  return far === undefined ? Math.round((whole - part) / 2) : whole - part - far;
}

function fade({ data }: Pixels, opacity: number): void {
  for (let at = 3; at < data.length; at += 4) data[at] = Math.round(data[at]! * opacity);
}

/** A layer as large as the base, with the picture at its place, once or in rows. */
function spread(
  picture: Pixels,
  { width, height }: { width: number; height: number },
  { left, top, repeat }: { left: number; top: number; repeat: DrawOptions["repeat"] },
): Pixels {
  const data = Buffer.alloc(width * height * 4);
  const isRepeated = { x: repeat === true || repeat === "x", y: repeat === true || repeat === "y" };
  const rowBytes = picture.width * 4;
  const startX = isRepeated.x ? modulo(left, picture.width) - picture.width : left;
  for (let y = 0; y < height; y++) {
    const sourceY = isRepeated.y ? modulo(y - top, picture.height) : y - top;
    if (sourceY < 0 || sourceY >= picture.height) continue;
    for (let x = startX; x < width; x += picture.width) {
      const from = Math.max(0, -x);
      const to = Math.min(picture.width, width - x);
      if (from < to)
        picture.data.copy(
          data,
          (y * width + x + from) * 4,
          sourceY * rowBytes + from * 4,
          sourceY * rowBytes + to * 4,
        );
      if (!isRepeated.x) break;
    }
  }
  return { data, width, height, channels: 4 };
}

const modulo = (value: number, by: number): number => ((value % by) + by) % by;
