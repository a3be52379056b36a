import { existsSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { pino } from "pino";
import type { DomainError } from "../../src/platform/domain-error.ts";
import type { Held } from "../../src/products/images/directory.ts";
import { ImageEngine } from "../../src/products/images/engine/engine.ts";
import type { Image } from "../../src/products/images/image.ts";
import { MadeResults } from "../../src/products/images/results/made-results.ts";
import { CopyPlan } from "../../src/products/images/results/copy-plan.ts";
import { IntermediateCopies } from "../../src/products/images/results/intermediate-copies.ts";
import { parseOptions } from "../../src/products/images/recipe/options.ts";
import { probe } from "../../src/products/images/input/probe.ts";
import { planResult, resultFolder } from "../../src/products/images/recipe/recipe.ts";
import { Results } from "../../src/products/images/results/results.ts";
import { ResultMaker } from "../../src/products/images/results/result-maker.ts";
import { FileBlobs } from "../../src/platform/storage/blobs.ts";
import { hollowGif, jpegOf, painted, pngOf, scenery } from "./fixtures.ts";
import { platformsPerTest } from "./per-test.ts";
import type { ImagePlatform } from "./platform.ts";

/**
 * Only a picture's own faults are reported as such and remembered, not those of the image process or the
 * disk.
 */
let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "selvedge-image-faults-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const start = platformsPerTest();

/** Waits for a new image process with a running job. */
async function workingProcess({ services }: ImagePlatform, before?: number): Promise<number> {
  const { engine } = services.images;
  await expect
    .poll(() => engine.pid !== undefined && engine.pid !== before && engine.load.running > 0, { interval: 1 })
    .toBe(true);
  return engine.pid!;
}

/** Suspends the image process with a running job while `meanwhile` runs. */
async function whileStopped(platform: ImagePlatform, meanwhile: () => Promise<unknown>): Promise<void> {
  const pid = platform.services.images.engine.pid!;
  await meanwhile();
  process.kill(pid, "SIGCONT");
}

it("delivers every valid picture while the image process is repeatedly killed under load", async () => {
  const platform = await start({ imageSlots: 2 });
  const id = await platform.store(await jpegOf(scenery(1200, 900)));
  const asked = Array.from({ length: 24 }, (_, i) => `w=${400 + i},f=webp`);
  const answers = Promise.all(asked.map((options) => platform.deliver(id, options)));
  let pid: number | undefined;
  // Fewer than the processes that a job may lose.
  for (let kills = 0; kills < 4; kills++) {
    pid = await workingProcess(platform, pid);
    process.kill(pid, "SIGKILL");
  }
  expect((await answers).map(({ status }) => status)).toEqual(asked.map(() => 200));
  const again = await Promise.all(asked.map((options) => platform.deliver(id, options)));
  expect(again.map(({ headers }) => headers.get("cf-cache-status"))).toEqual(asked.map(() => "HIT"));
});

it("returns 503 while no image process survives, and does not cache that", async () => {
  const platform = await start({ imageSlots: 1 });
  const id = await platform.store(await jpegOf(scenery(1600, 1200)));
  const { engine } = platform.services.images;
  let pid: number | undefined;
  const killer = setInterval(() => {
    if (engine.pid !== undefined && engine.pid !== pid) process.kill((pid = engine.pid), "SIGKILL");
  });
  const { status, headers } = await platform.deliver(id, "w=1500,f=avif");
  clearInterval(killer);
  expect([status, headers.get("cf-resized"), headers.get("cache-control")]).toEqual([
    503,
    "err=9523",
    "no-store",
  ]);
  expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
  expect((await platform.deliver(id, "w=1500,f=avif")).status).toBe(200);
});

it("refuses a picture that crashes its process alone, caches that, and delivers concurrent ones", async () => {
  const detector = join(folder, "crashing.mjs");
  writeFileSync(
    detector,
    "export const detect = (rgb) => { if (rgb[0] > 200 && rgb[1] < 50) process.exit(70); return []; };",
  );
  const platform = await start({ imageSlots: 2, imageFaceDetector: detector });
  const [red, blue] = await Promise.all([
    platform.store(await pngOf(painted(400, 300, () => [250, 10, 10]))),
    platform.store(await pngOf(painted(400, 300, () => [10, 10, 250]))),
  ]);
  const options = (width: number): string => `w=${width},h=50,fit=cover,gravity=face,f=png`;
  const innocent = Promise.all(Array.from({ length: 20 }, (_, i) => platform.deliver(blue, options(60 + i))));
  const culprit = await platform.deliver(red, options(60));
  expect([culprit.status, culprit.headers.get("cf-resized")]).toEqual([422, "err=9516"]);
  expect((await innocent).map(({ status }) => status)).toEqual(Array.from({ length: 20 }, () => 200));
  const run = vi.spyOn(platform.services.images.engine, "run");
  expect((await platform.deliver(red, options(60))).status).toBe(422);
  expect(run).not.toHaveBeenCalled();
});

it("does not blame a picture for a face detector that fails", async () => {
  const detector = join(folder, "failing.mjs");
  writeFileSync(detector, "export const detect = () => { throw new Error('no model'); };");
  const platform = await start({ imageFaceDetector: detector });
  const id = await platform.store(await pngOf(painted(400, 300, () => [10, 10, 250])));
  const { status, bytes } = await platform.deliver(id, "w=60,h=50,fit=cover,gravity=face,f=png");
  expect([status, bytes.toString()]).toEqual([500, expect.not.stringContaining("no model")]);
});

it("retries a picture that took too long, since the machine may have been busy", async () => {
  const logger = pino({ level: "silent" });
  const engine = new ImageEngine({ slots: 1, timeLimitSeconds: 3, logger });
  const blobs = new FileBlobs(join(folder, "blobs"));
  const results = new Results({
    folder: join(folder, "results"),
    memoryBytesMax: 1_000_000,
    diskBytesMax: 10_000_000,
    logger,
  });
  const intermediateCopies = new IntermediateCopies({
    plan: new CopyPlan(0),
    engine,
    results,
    blobs,
    logger,
  });
  const saveFocus = async (): Promise<void> => {};
  const made = new MadeResults(results, logger);
  const { sizeBytes } = await blobs.put("photo", await jpegOf(scenery(400, 300)));
  const content = {
    ...(await probe(blobs.path("photo"))),
    blobKey: "photo",
    sha256: "0".repeat(64),
    sizeBytes,
  };
  const held: Held = {
    image: { content, focus: null } as Image,
    isCurrent: true,
    hasIntermediateCopy: false,
  };
  const transforms = new ResultMaker({
    directory: { image: async () => held },
    engine,
    results,
    made,
    intermediateCopies,
    blobs,
    logger,
    saveFocus,
  });
  const make = async (options: string) => {
    const planned = planResult(parseOptions(options), content, { avif: false, webp: true });
    const name = `${resultFolder("photo")}/${Buffer.from(options.padEnd(16)).toString("hex")}`;
    return transforms.make(
      held,
      { name, planned, isFromIntermediateCopy: false },
      new AbortController().signal,
    );
  };
  const outcome = async (options: string): Promise<unknown> =>
    make(options).then(
      () => "made",
      (error: unknown) => (error as DomainError).kind,
    );
  await expect.poll(() => outcome("w=10"), { interval: 10 }).toBe("made");
  process.kill(engine.pid!, "SIGSTOP");
  expect(await outcome("w=20")).toBe("images.tooLong");
  await expect.poll(() => outcome("w=20"), { interval: 10 }).toBe("made");
  await engine.close();
});

it("returns 404 for an image that is deleted during its transform", async () => {
  const platform = await start({ imageSlots: 1 });
  const id = await platform.store(await jpegOf(scenery(800, 600)));
  await platform.deliver(id, "w=10,f=png");
  const { engine } = platform.services.images;
  process.kill(engine.pid!, "SIGSTOP");
  const asked = platform.deliver(id, "w=700,f=png");
  await expect.poll(() => engine.load.running).toBe(1);
  await whileStopped(platform, () => platform.api("DELETE", `/v1/${id}`));
  const { status, headers, bytes } = await asked;
  expect([status, headers.get("cf-resized"), bytes.toString()]).toEqual([
    404,
    "err=9404",
    "ERROR 5404: Image not found\n",
  ]);
});

it("returns 500 without a path when the bytes of an image are lost", async () => {
  const dataDir = join(folder, "lost");
  const platform = await start({ ephemeral: false, dataDir });
  const photo = await platform.store(await jpegOf(scenery(800, 600)));
  const animation = await platform.store(hollowGif(1000, 1000, 60));
  rmSync(join(dataDir, "blobs/images"), { recursive: true });
  // One is transformed; the other is so large that it is sent unchanged.
  for (const id of [photo, animation]) {
    const { status, bytes } = await platform.deliver(id, "w=700");
    expect([status, bytes.toString()]).toEqual([
      500,
      expect.stringMatching(/^ERROR 10500: An internal error/),
    ]);
    expect(bytes.toString()).not.toContain(dataDir);
  }
});

it("recreates an intermediate copy that is evicted during a job", async () => {
  const dataDir = join(folder, "intermediateCopy");
  const platform = await start({ ephemeral: false, dataDir, imageSlots: 1 });
  const id = await platform.store(await jpegOf(scenery(1800, 2400), { progressive: true }));
  const { engine } = platform.services.images;
  const run = vi.spyOn(engine, "run");
  const intermediateCopy = (): string | undefined =>
    run.mock.calls.map(([{ picture }]) => picture.intermediateCopy).findLast((path) => path !== undefined);
  for (let width = 300; intermediateCopy() === undefined && width < 400; width++)
    await platform.deliver(id, `w=${width},f=jpeg`);
  const dropped = intermediateCopy()!;
  expect(statSync(dropped).size).toBeGreaterThan(0);
  process.kill(engine.pid!, "SIGSTOP");
  const asked = platform.deliver(id, "w=299,f=jpeg");
  await expect.poll(() => engine.load.running).toBe(1);
  await whileStopped(platform, async () => rmSync(dropped));
  expect((await asked).status).toBe(200);
  expect(existsSync(dropped)).toBe(true);
  expect(readdirSync(join(dropped, "..")).every((name) => !name.endsWith(".tmp"))).toBe(true);
});
