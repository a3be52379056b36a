import sharp from "sharp";
import { ownerToken, startTestServer, type ApiResponse, type TestServer } from "../helpers/server.ts";

export interface ImagePlatform extends TestServer {
  upload(file: Uint8Array | string, fields?: Record<string, string>, name?: string): Promise<ApiResponse>;
  /** Uploads a valid image and returns its id. */
  store(file: Uint8Array, fields?: Record<string, string>): Promise<string>;
  /** Requests an image by id and options, as a browser would. */
  deliver(id: string, options: string, headers?: Record<string, string>): Promise<Delivered>;
  api(method: string, path: string, body?: unknown): Promise<ApiResponse>;
}

export interface Delivered {
  status: number;
  headers: Headers;
  bytes: Buffer;
}

/** Starts a whole platform with helpers for tests of images. */
export async function startImagePlatform(
  settings: Parameters<typeof startTestServer>[0] = {},
): Promise<ImagePlatform> {
  const server = await startTestServer(settings);
  const images = `/accounts/${server.ready.account_id}/images`;
  const upload: ImagePlatform["upload"] = async (file, fields = {}, name = "picture.jpg") => {
    const form = new FormData();
    for (const [key, value] of Object.entries(fields)) form.set(key, value);
    form.set("file", new File([file as Uint8Array<ArrayBuffer>], name));
    const response = await fetch(`${server.ready.api}${images}/v1`, {
      method: "POST",
      headers: { authorization: `Bearer ${ownerToken}` },
      body: form,
    });
    return {
      status: response.status,
      headers: response.headers,
      body: (await response.json()) as ApiResponse["body"],
    };
  };
  return {
    ...server,
    upload,
    async store(file, fields) {
      const answer = await upload(file, fields);
      if (answer.status !== 200) throw new Error(JSON.stringify(answer.body));
      return (answer.body.result as { id: string }).id;
    },
    async deliver(id, options, headers = {}) {
      const url = `${server.ready.delivery}/${server.ready.account_hash}/${id}/${options}`;
      const response = await fetch(url, { headers });
      return {
        status: response.status,
        headers: response.headers,
        bytes: Buffer.from(await response.arrayBuffer()),
      };
    },
    api: (method, path, body) => server.call(method, `${images}${path}`, body),
  };
}

export interface Raster {
  width: number;
  height: number;
  channels: number;
  data: Buffer;
  at: (x: number, y: number) => number[];
}

/** The pixels of an encoded image, in sRGB. */
export async function raster(bytes: Uint8Array): Promise<Raster> {
  const { data, info } = await sharp(bytes).toColourspace("srgb").raw().toBuffer({ resolveWithObject: true });
  const { width, height, channels } = info;
  return {
    width,
    height,
    channels,
    data,
    at: (x, y) => {
      const place = (Math.floor(y) * width + Math.floor(x)) * channels;
      return [...data.subarray(place, place + channels)];
    },
  };
}

export const sizeOf = async (bytes: Uint8Array): Promise<string> => {
  const { width, height, pageHeight } = await sharp(bytes).metadata();
  return `${width}x${pageHeight ?? height}`;
};

/** The largest difference in a channel of two colours. */
export const colorDistance = (a: readonly number[], b: readonly number[]): number =>
  Math.max(...a.slice(0, 3).map((value, i) => Math.abs(value - b[i]!)));

/** The visible difference of two colours: ΔE of 1976, where 1 is barely visible. */
export function visibleDistance(a: readonly number[], b: readonly number[]): number {
  const [first, second] = [lab(a), lab(b)];
  return Math.hypot(...first.map((value, i) => value - second[i]!));
}

function lab(rgb: readonly number[]): number[] {
  const [r, g, b] = rgb.map((value) =>
    value <= 10 ? value / 3294.6 : ((value / 255 + 0.055) / 1.055) ** 2.4,
  ) as [number, number, number];
  const [x, y, z] = [
    (0.4125 * r + 0.3576 * g + 0.1804 * b) / 0.9505,
    0.2127 * r + 0.7152 * g + 0.0722 * b,
    (0.0193 * r + 0.1192 * g + 0.9503 * b) / 1.0888,
  ].map((value) => (value > 0.008856 ? Math.cbrt(value) : 7.787 * value + 16 / 116)) as [
    number,
    number,
    number,
  ];
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}

/** Structural similarity of the luminance of two images of one size, over blocks of 8 × 8. */
export async function ssim(left: Uint8Array, right: Uint8Array): Promise<number> {
  const grey = async (bytes: Uint8Array) =>
    sharp(bytes)
      .flatten({ background: "#fff" })
      .toColourspace("b-w")
      .raw()
      .toBuffer({ resolveWithObject: true });
  const [a, b] = await Promise.all([grey(left), grey(right)]);
  const { width, height } = a.info;
  if (b.info.width !== width || b.info.height !== height)
    throw new Error(`${width}x${height} is not ${b.info.width}x${b.info.height}`);
  const side = Math.min(8, width, height);
  let sum = 0;
  let blocks = 0;
  for (let top = 0; top + side <= height; top += side)
    for (let left0 = 0; left0 + side <= width; left0 += side) {
      sum += blockSsim(a.data, b.data, { left: left0, top, side, width });
      blocks += 1;
    }
  return sum / blocks;
}

function blockSsim(
  a: Buffer,
  b: Buffer,
  { left, top, side, width }: { left: number; top: number; side: number; width: number },
): number {
  let [sumA, sumB, squareA, squareB, product] = [0, 0, 0, 0, 0];
  for (let y = top; y < top + side; y++)
    for (let x = left; x < left + side; x++) {
      const [p, q] = [a[y * width + x]!, b[y * width + x]!];
      sumA += p;
      sumB += q;
      squareA += p * p;
      squareB += q * q;
      product += p * q;
    }
  const count = side * side;
  const [meanA, meanB] = [sumA / count, sumB / count];
  const [varianceA, varianceB] = [squareA / count - meanA ** 2, squareB / count - meanB ** 2];
  const covariance = product / count - meanA * meanB;
  const [c1, c2] = [(0.01 * 255) ** 2, (0.03 * 255) ** 2];
  return (
    ((2 * meanA * meanB + c1) * (2 * covariance + c2)) /
    ((meanA ** 2 + meanB ** 2 + c1) * (varianceA + varianceB + c2))
  );
}
