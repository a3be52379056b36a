import sharp from "sharp";
import { startSelvedge } from "../../bench/lib/child.ts";
import { residentMegabytes } from "../../bench/lib/measure.ts";
import { getWhole, imageProcess, peakMegabytes, upload } from "../../bench/images-lib.ts";
import { bitPng, noise } from "../images/fixtures.ts";

/** The largest pictures that are accepted, in a platform of its own: time and memory. `node test/proofs/images-limits.ts` */
const server = await startSelvedge(["--image-slots", "2"]);
const { ready } = server;
const url = (id: string): string => `${ready.delivery}/${ready.account_hash}/${id}`;
let failed = 0;
function report(what: string, measured: number, most: number, unit: string): void {
  const isMet = measured <= most;
  if (!isMet) failed += 1;
  process.stdout.write(
    `${isMet ? "met   " : "MISSED"}  ${what}: ${measured.toFixed(0)} ${unit}, at most ${most}\n`,
  );
}

const bits = await upload(ready, bitPng(10_000, 10_000, true));
await getWhole(`${url(bits)}/w=10`);
const images = imageProcess(server.pid)!;
let startedAt = performance.now();
await getWhole(`${url(bits)}/w=800,f=webp`);
report("100 megapixels of one bit → 800 px", performance.now() - startedAt, 2000, "ms");
report("… the image process's most memory", peakMegabytes(images), 250, "MB");

// Small noise, enlarged: 100 megapixels that a progressive JPEG has to keep as coefficients.
const big = await sharp(noise(500 * 500 * 3), { raw: { width: 500, height: 500, channels: 3 } })
  .resize(10_000, 10_000, { kernel: "linear" })
  .jpeg({ progressive: true, quality: 80 })
  .toBuffer();
process.stdout.write(`        a progressive JPEG of 10,000 × 10,000 in ${big.length} bytes\n`);
const other = Buffer.concat([big, Buffer.of(0)]);
const [first, second] = [await upload(ready, big), await upload(ready, other)];
const before = residentMegabytes(images);
let most = before;
const sampler = setInterval(() => (most = Math.max(most, residentMegabytes(images))), 10);
startedAt = performance.now();
await Promise.all([getWhole(`${url(first)}/w=800,f=webp`), getWhole(`${url(second)}/w=800,f=webp`)]);
clearInterval(sampler);
process.stdout.write(`        both took ${(performance.now() - startedAt).toFixed(0)} ms\n`);
report("two of them at once add", most - before, 450, "MB");
report("the platform's own memory", residentMegabytes(server.pid), 400, "MB");
await server.stop();
process.exitCode = failed === 0 ? 0 : 1;
