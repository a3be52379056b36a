import { crc32, deflateSync } from "node:zlib";
import sharp, { type JpegOptions, type Sharp } from "sharp";

/** Images that tests generate, so that each is exactly what its test needs. */

type Rgb = readonly [number, number, number];
export const quadrants: readonly Rgb[] = [
  [230, 30, 30],
  [30, 200, 30],
  [30, 30, 230],
  [230, 210, 30],
];

/** A PNG with pixels from a function of their position. */
export async function painted(
  width: number,
  height: number,
  color: (x: number, y: number) => readonly number[],
): Promise<Sharp> {
  const channels = color(0, 0).length as 3 | 4;
  const data = Buffer.alloc(width * height * channels);
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++) data.set(color(x, y), (y * width + x) * channels);
  return sharp(data, { raw: { width, height, channels } });
}

/** Four colours: red and green on top, blue and yellow below. */
export const fourColors = (width: number, height: number): Promise<Sharp> =>
  painted(width, height, (x, y) => quadrants[(y < height / 2 ? 0 : 2) + (x < width / 2 ? 0 : 1)]!);

/** Smooth colours with a few edges: similar enough to a photograph to compare encoders. */
export const scenery = (width: number, height: number): Promise<Sharp> =>
  painted(width, height, (x, y) => {
    const [u, v] = [x / width, y / height];
    const disc = (u - 0.6) ** 2 + (v - 0.4) ** 2 < 0.05 ? 70 : 0;
    const waves = 20 * Math.sin(u * 40) * Math.cos(v * 30);
    return [40 + 150 * u + disc, 60 + 120 * v + waves, 200 - 120 * u + disc / 2].map((value) =>
      Math.max(0, Math.min(255, Math.round(value))),
    );
  });

/** Noise that no encoder compresses, the same at each call. */
export function noise(bytes: number, seed = 1): Buffer {
  const data = Buffer.alloc(bytes);
  let state = seed;
  for (let i = 0; i < bytes; i++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    data[i] = state >>> 24;
  }
  return data;
}

export const jpegOf = async (image: Promise<Sharp>, options: JpegOptions = {}): Promise<Buffer> =>
  (await image).jpeg({ quality: 95, chromaSubsampling: "4:4:4", ...options }).toBuffer();
export const pngOf = async (image: Promise<Sharp>): Promise<Buffer> => (await image).png().toBuffer();

/** An animation with grey frames, each lighter than the previous one. */
export async function animation(
  format: "gif" | "webp",
  { width, height, frames }: { width: number; height: number; frames: number },
): Promise<Buffer> {
  const data = Buffer.alloc(width * height * frames * 3);
  for (let frame = 0; frame < frames; frame++) {
    const from = frame * width * height * 3;
    data.fill(Math.round((frame / frames) * 255), from, from + width * height * 3);
  }
  const raw = { width, height: height * frames, channels: 3 as const, pageHeight: height };
  const delay = Array.from({ length: frames }, () => 80);
  const image = sharp(data, { raw });
  return format === "gif"
    ? image.gif({ delay, loop: 3 }).toBuffer()
    : image.webp({ delay, loop: 3 }).toBuffer();
}

/** A GIF with many frames on a large canvas, each of which paints one pixel. */
export function hollowGif(width: number, height: number, frames: number): Buffer {
  const short = (value: number): number[] => [value & 255, value >> 8];
  const screen = [...short(width), ...short(height), 0x80, 0, 0, 0, 0, 0, 255, 255, 255];
  const point = [0x2c, 0, 0, 0, 0, 1, 0, 1, 0, 0, 2, 2, 0x44, 1, 0];
  const control = [0x21, 0xf9, 4, 0, 8, 0, 0, 0];
  const loop = [0x21, 0xff, 11, ...Buffer.from("NETSCAPE2.0"), 3, 1, 0, 0, 0];
  const body = Array.from({ length: frames }, () => [...control, ...point]).flat();
  return Buffer.from([...Buffer.from("GIF89a"), ...screen, ...loop, ...body, 0x3b]);
}

function chunk(type: string, data: Uint8Array): Buffer {
  const body = Buffer.concat([Buffer.from(type), data]);
  const out = Buffer.alloc(body.length + 8);
  out.writeUInt32BE(data.length, 0);
  body.copy(out, 4);
  out.writeUInt32BE(crc32(body), body.length + 4);
  return out;
}

/** A black PNG with one bit per pixel. Without `isWhole` its pixels are missing. */
export function bitPng(width: number, height: number, isWhole: boolean): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header[8] = 1;
  const pixels = isWhole
    ? deflateSync(Buffer.alloc((1 + Math.ceil(width / 8)) * height))
    : Buffer.of(0x78, 1);
  return Buffer.concat([
    Buffer.from("\x89PNG\r\n\x1a\n", "latin1"),
    chunk("IHDR", header),
    chunk("IDAT", pixels),
    ...(isWhole ? [chunk("IEND", Buffer.alloc(0))] : []),
  ]);
}

const shorts = (...values: number[]): Buffer =>
  Buffer.from(values.flatMap((each) => [each >> 8, each & 255]));

/**
 * A JPEG with a second header of 1 × 1 pixels. Decoders look for a marker after FF01, which has no length; who takes the
 * next bytes for one finds the second header.
 */
export function jpegOfTwoSizes(jpeg: Buffer): Buffer {
  const scan = jpeg.indexOf(Buffer.from("ffda", "hex"));
  const header = jpeg.subarray(2, scan);
  const other = Buffer.from("ffc00011080001000103011100021100031100ffda000c03010002000300003f00", "hex");
  const hiding = Buffer.concat([Buffer.from("ffef", "hex"), shorts(other.length + 2)]);
  const skipped = shorts(2 + header.length + hiding.length);
  const start = Buffer.from("ffd8ff01", "hex");
  return Buffer.concat([start, skipped, header, hiding, other, jpeg.subarray(scan)]);
}

/** A GIF that announces a canvas of 1 × 1 pixels, on which its frames have no place. */
export function gifOfTwoSizes(gif: Buffer): Buffer {
  const copy = Buffer.from(gif);
  copy.writeUInt32LE(0x0001_0001, 6);
  return copy;
}
