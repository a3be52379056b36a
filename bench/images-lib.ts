import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Agent, request } from "undici";
import sharp from "sharp";
import type { Ready } from "../src/ready.ts";
import { benchToken } from "./lib/child.ts";
import { cpuMicroseconds, residentMegabytes } from "./lib/measure.ts";

/** The picture that everything is measured with: detail at every scale, as in a photograph, and the same in every run. */
export async function photo(width = 4000, height = 3000): Promise<Buffer> {
  const [w, h] = [width / 2, height / 2];
  const sum = new Float32Array(w * h * 3).fill(118);
  let state = 7;
  const random = (): number => (state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0) >>> 24;
  for (let cells = 4; cells <= 1024; cells *= 2) {
    const size = { width: cells, height: Math.round((cells * 3) / 4) };
    const noise = Buffer.from(Array.from({ length: size.width * size.height * 3 }, random));
    const layer = await sharp(noise, { raw: { ...size, channels: 3 } })
      .resize({ width: w, height: h, fit: "fill", kernel: "cubic" })
      .raw()
      .toBuffer();
    // Natural pictures have half the amplitude at twice the frequency, and vary more in luminance than in colour.
    const amplitude = 1.1 / Math.sqrt(cells / 4) ** 1.4;
    for (let at = 0; at < sum.length; at += 3) {
      const light = layer[at]! - 128;
      for (let c = 0; c < 3; c++)
        sum[at + c]! += amplitude * (light + (cells <= 32 ? 0.5 * (layer[at + c]! - 128) : 0));
    }
  }
  const { data } = await sharp(Buffer.from(Uint8ClampedArray.from(sum)), {
    raw: { width: w, height: h, channels: 3 },
  })
    .resize({ width, height, fit: "fill" })
    .raw()
    .toBuffer({ resolveWithObject: true });
  // Sensor noise: it makes the file as large as a camera's. Decoding cost depends on the file's size.
  for (let at = 0; at < data.length; at += 3) {
    const grain = (random() + random() + random() - 382) / 18;
    for (let c = 0; c < 3; c++) data[at + c] = Math.max(0, Math.min(255, data[at + c]! + grain));
  }
  return sharp(data, { raw: { width, height, channels: 3 } })
    .jpeg({ quality: 92, progressive: false })
    .toBuffer();
}

export async function upload(ready: Ready, bytes: Uint8Array): Promise<string> {
  const form = new FormData();
  form.set("file", new File([bytes as Uint8Array<ArrayBuffer>], "photo.jpg"));
  const response = await fetch(`${ready.api}/accounts/${ready.account_id}/images/v1`, {
    method: "POST",
    headers: { authorization: `Bearer ${benchToken}` },
    body: form,
  });
  const body = (await response.json()) as { result: { id: string } | null };
  if (body.result === null) throw new Error(JSON.stringify(body));
  return body.result.id;
}

/** The ids of a process and all its descendants. */
export function family(pid: number): number[] {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim();
    return [pid, ...(children === "" ? [] : children.split(" ").flatMap((child) => family(Number(child))))];
  } catch {
    return []; // it has just ended
  }
}

export const cpuOf = (pid: number): number =>
  family(pid).reduce((sum, each) => sum + cpuMicroseconds(each), 0);
export const memoryOf = (pid: number): number =>
  family(pid).reduce((sum, each) => sum + residentMegabytes(each), 0);
/** Peak resident memory of a process. */
export const peakMegabytes = (pid: number): number =>
  Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))![1]) / 1024;

/** Finds the image process, by the codecs that it has loaded. */
export const imageProcess = (pid: number): number | undefined =>
  family(pid).find((each) => each !== pid && readFileSync(`/proc/${each}/maps`, "utf8").includes("libvips"));

const agent = new Agent({ connections: 64, pipelining: 1 });
export interface ImageResponse {
  status: number;
  bytes: Buffer;
  headers: Record<string, string | string[] | undefined>;
}
export async function get(url: string, headers: Record<string, string> = {}): Promise<ImageResponse> {
  const response = await request(url, { dispatcher: agent, headers });
  return {
    status: response.statusCode,
    headers: response.headers,
    bytes: Buffer.from(await response.body.arrayBuffer()),
  };
}
export async function getWhole(url: string, headers?: Record<string, string>): Promise<ImageResponse> {
  const answer = await get(url, headers);
  if (answer.status !== 200) throw new Error(`${url}: ${answer.status} ${answer.bytes.toString()}`);
  return answer;
}

export interface Timed {
  seconds: number;
  /** Milliseconds of each call, sorted. */
  each: number[];
}
/** Calls `count` times, `concurrency` at a time. */
export async function timed(
  count: number,
  concurrency: number,
  call: (index: number) => Promise<unknown>,
): Promise<Timed> {
  let next = 0;
  const each: number[] = [];
  const startedAt = performance.now();
  await Promise.all(
    Array.from({ length: concurrency }, async () => {
      while (next < count) {
        const index = next++;
        const before = performance.now();
        await call(index);
        each.push(performance.now() - before);
      }
    }),
  );
  return { seconds: (performance.now() - startedAt) / 1000, each: each.toSorted((a, b) => a - b) };
}
export const quantile = (sorted: readonly number[], share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]!;

export const peerFolder = join(import.meta.dirname, "peers");

/** Structural similarity of the luminance of two images of one size, over windows of 8 × 8 at every fourth point. */
export async function ssim(left: Uint8Array, right: Uint8Array): Promise<number> {
  const grey = async (bytes: Uint8Array) =>
    sharp(bytes).toColourspace("b-w").raw().toBuffer({ resolveWithObject: true });
  const [a, b] = await Promise.all([grey(left), grey(right)]);
  const { width, height } = a.info;
  const side = 8;
  let total = 0;
  let windows = 0;
  for (let top = 0; top + side <= height; top += 4)
    for (let start = 0; start + side <= width; start += 4) {
      let [sumA, sumB, squareA, squareB, product] = [0, 0, 0, 0, 0];
      for (let y = top; y < top + side; y++)
        for (let x = start; x < start + side; x++) {
          const [p, q] = [a.data[y * width + x]!, b.data[y * width + x]!];
          sumA += p;
          sumB += q;
          squareA += p * p;
          squareB += q * q;
          product += p * q;
        }
      const n = side * side;
      const [meanA, meanB] = [sumA / n, sumB / n];
      const [c1, c2] = [6.5025, 58.5225];
      total +=
        ((2 * meanA * meanB + c1) * (2 * (product / n - meanA * meanB) + c2)) /
        ((meanA ** 2 + meanB ** 2 + c1) * (squareA / n - meanA ** 2 + squareB / n - meanB ** 2 + c2));
      windows += 1;
    }
  return total / windows;
}
