import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import sharp from "sharp";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { ImageJob } from "../../src/products/images/engine/job.ts";
import { jpegOf, scenery } from "./fixtures.ts";
import { platformsPerTest } from "./per-test.ts";
import { sizeOf, ssim, startImagePlatform, type Delivered, type ImagePlatform } from "./platform.ts";

/** Small results of large images, made from an intermediate copy. */
let folder: string;
let upright: Buffer;
/** A progressive JPEG with EXIF rotation, which is slow to decode. */
let large: Buffer;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "selvedge-intermediate-copies-"));
  upright = await jpegOf(scenery(1800, 2400));
  large = await sharp(upright)
    .rotate(270)
    .jpeg({ quality: 92, progressive: true })
    .withMetadata({ orientation: 6 })
    .toBuffer();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const start = platformsPerTest();

/** The source that the engine read for each result, in order. */
function watchSources(platform: ImagePlatform): () => ("image" | "intermediateCopy")[] {
  const run = vi.spyOn(platform.services.images.engine, "run");
  return () =>
    run.mock.calls.map(([{ picture }]: [Pick<ImageJob, "picture">, ...unknown[]]) =>
      picture.intermediateCopy === undefined ? "image" : "intermediateCopy",
    );
}

/** Makes requests until results are made from the intermediate copy, which is created in the background. */
async function untilReady(platform: ImagePlatform, id: string): Promise<void> {
  const sources = watchSources(platform);
  for (let width = 700; !sources().includes("intermediateCopy"); width++) {
    expect(width).toBeLessThan(900);
    expect((await platform.deliver(id, `w=${width},f=jpeg`)).status).toBe(200);
  }
  vi.restoreAllMocks();
}

const intermediateCopyFiles = (dataDir: string): string[] =>
  readdirSync(join(dataDir, "cache", "images"), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => statSync(path).size > 100_000);

it("starts with the second small result, and changes the ETag", async () => {
  const platform = await start();
  const id = await platform.store(large);
  const sources = watchSources(platform);
  const first = await platform.deliver(id, "w=400,f=webp");
  await platform.deliver(id, "w=401,f=png"); // lossless: always from the image
  expect(sources()).toEqual(["image", "image"]);
  await platform.deliver(id, "w=402,f=webp");
  await expect.poll(sources).toHaveLength(4);
  const again = async (): Promise<Delivered> => platform.deliver(id, "w=400,f=webp");
  await expect.poll(async () => (await again()).headers.get("etag")).not.toBe(first.headers.get("etag"));
  expect(sources().slice(4)).toEqual(["intermediateCopy"]);
  const second = await again();
  expect(second.headers.get("cf-cache-status")).toBe("HIT");
  expect(await ssim(second.bytes, first.bytes)).toBeGreaterThan(0.98);
});

describe("once there is one", () => {
  let platform: ImagePlatform;
  let bare: ImagePlatform;
  let id: string;
  let bareId: string;
  beforeAll(async () => {
    [platform, bare] = await Promise.all([
      startImagePlatform(),
      startImagePlatform({ imageIntermediatePixels: 0 }),
    ]);
    [id, bareId] = await Promise.all([platform.store(large), bare.store(large)]);
    await untilReady(platform, id);
  });
  afterAll(async () => Promise.all([platform.close(1000), bare.close(1000)]));

  it.each([
    "w=400",
    "w=301,h=299",
    "w=300,h=300,fit=cover,gravity=left",
    "w=300,h=500,fit=crop,gravity=0.8x0.2",
    "w=200,h=100,fit=aspect-crop",
    "w=300,h=300,fit=pad,background=%23ff0000",
    "w=320,h=100,fit=squeeze",
    "w=300,h=200,rotate=90",
    "w=300,h=200,fit=cover,rotate=270,flip=h,gravity=top",
    "w=300,brightness=1.2,contrast=1.1,gamma=1.2,saturation=0.5",
    "w=300,sharpen=1",
    "w=300,blur=5",
    "w=150,dpr=2",
  ])("makes results that look as if made from the image: %s", async (options) => {
    const sources = watchSources(platform);
    for (const format of ["webp", "jpeg", "avif"]) {
      const [ours, theirs] = await Promise.all([
        platform.deliver(id, `${options},f=${format}`),
        bare.deliver(bareId, `${options},f=${format}`),
      ]);
      expect(await sizeOf(ours.bytes)).toBe(await sizeOf(theirs.bytes));
      expect(await ssim(ours.bytes, theirs.bytes)).toBeGreaterThan(0.97);
    }
    expect(sources()).toEqual(["intermediateCopy", "intermediateCopy", "intermediateCopy"]);
  });

  it.each([
    ["a large result", "w=950,f=webp"],
    ["a crop of a large one", "w=100,h=1300,fit=cover,f=webp"],
    ["a part of the image", "w=100,trim=10;10;10;10,f=webp"],
    ["more quality", "w=400,q=91,f=jpeg"],
    ["no loss", "w=400,q=100,f=webp"],
    ["PNG", "w=400,f=png"],
    ["the image's notes", "w=400,metadata=keep,f=jpeg"],
    ["a description", "w=400,f=json"],
  ])("reads the image itself for %s", async (_what, options) => {
    const sources = watchSources(platform);
    expect((await platform.deliver(id, options)).status).toBe(200);
    expect(sources()).toEqual(["image"]);
  });
});

describe("which images", () => {
  it.each([
    ["a JPEG that is quick to decode", async () => upright],
    ["a transparent image", async () => sharp(upright).ensureAlpha(0.5).webp({ effort: 0 }).toBuffer()],
    ["an image with a palette", async () => sharp(upright).png({ palette: true, effort: 1 }).toBuffer()],
  ])("makes no copy for %s", async (_what, make) => {
    const platform = await start();
    const id = await platform.store(await make());
    const sources = watchSources(platform);
    for (const width of [300, 301, 302, 303]) await platform.deliver(id, `w=${width},f=jpeg`);
    expect(sources()).toEqual(["image", "image", "image", "image"]);
  });

  it("is disabled by the setting", async () => {
    const platform = await start({ imageIntermediatePixels: 0 });
    const id = await platform.store(large);
    const sources = watchSources(platform);
    for (const width of [300, 301, 302, 303]) await platform.deliver(id, `w=${width},f=jpeg`);
    expect(sources()).toEqual(["image", "image", "image", "image"]);
  });
});

it("finds the copy after a restart, recreates a missing one, and removes it with its image", async () => {
  const settings = { ephemeral: false, dataDir: join(folder, "kept"), accountId: "a".repeat(32) };
  const before = await startImagePlatform(settings);
  const id = await before.store(large);
  await untilReady(before, id);
  const [copy] = intermediateCopyFiles(settings.dataDir);
  expect(await sizeOf(await sharp(copy).toBuffer())).toBe("1800x2400");
  await before.close(1000);

  const after = await start(settings);
  const sources = watchSources(after);
  await after.deliver(id, "w=500,f=jpeg");
  expect(sources()).toEqual(["intermediateCopy"]);
  rmSync(copy!);
  const second = await after.deliver(id, "w=501,f=jpeg");
  expect(sources()).toEqual(["intermediateCopy", "image", "intermediateCopy"]);
  expect(await sizeOf(second.bytes)).toBe("501x668");
  expect(intermediateCopyFiles(settings.dataDir)).toEqual([copy]);
  await after.api("DELETE", `/v1/${id}`);
  expect(intermediateCopyFiles(settings.dataDir)).toEqual([]);
});
