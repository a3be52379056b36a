import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import sharp from "sharp";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { ImageEngine } from "../../src/products/images/engine/engine.ts";
import { probe } from "../../src/products/images/input/probe.ts";
import { estimate } from "../../src/products/images/engine/cost.ts";
import { parseOptions } from "../../src/products/images/recipe/options.ts";
import { planResult } from "../../src/products/images/recipe/recipe.ts";
import { fourColors, jpegOf, painted, pngOf, scenery } from "./fixtures.ts";
import { platformsPerTest } from "./per-test.ts";
import { colorDistance, raster, startImagePlatform } from "./platform.ts";

/** How work is shared, queued, aborted and cached. */
let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "selvedge-images-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const start = platformsPerTest();

it("decodes once for 32 clients that ask for the same picture", async () => {
  const platform = await start();
  const id = await platform.store(await jpegOf(scenery(2000, 1500)));
  const run = vi.spyOn(platform.services.images.engine, "run");
  const answers = await Promise.all(Array.from({ length: 32 }, () => platform.deliver(id, "w=800,f=webp")));
  expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 32 }, () => 200));
  expect(new Set(answers.map(({ bytes }) => bytes.toString("base64"))).size).toBe(1);
  expect(run).toHaveBeenCalledTimes(1);
});

it("refuses jobs when the queue is full, while cached results are still delivered", async () => {
  const platform = await start({ imageSlots: 1 });
  const id = await platform.store(await jpegOf(scenery(800, 600)));
  await platform.deliver(id, "w=10,f=png");
  const cold = Array.from({ length: 80 }, (_, i) => platform.deliver(id, `w=${300 + i},f=avif`));
  const hits = await Promise.all(Array.from({ length: 10 }, () => platform.deliver(id, "w=10,f=png")));
  expect(
    hits.every(({ status, headers }) => status === 200 && headers.get("cf-cache-status") === "HIT"),
  ).toBe(true);
  const answers = await Promise.all(cold);
  const refused = answers.filter(({ status }) => status !== 200);
  // One runs, and 32 wait.
  expect(refused.length).toBeGreaterThan(0);
  expect(answers.length - refused.length).toBeGreaterThanOrEqual(33);
  for (const { status, headers, bytes } of refused) {
    expect([status, headers.get("cache-control"), headers.get("cf-resized")]).toEqual([
      429,
      "no-store",
      "err=9413",
    ]);
    expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
    expect(bytes.toString()).toMatch(/^ERROR 9413: /);
  }
  expect((await platform.deliver(id, "w=299,f=avif")).status).toBe(200);
});

it("tells how long a picture waited and took, and nothing of that from the cache", async () => {
  const platform = await start({ imageSlots: 1 });
  const id = await platform.store(await jpegOf(scenery(800, 600)));
  await platform.deliver(id, "w=10,f=png");
  const { engine } = platform.services.images;
  process.kill(engine.pid!, "SIGSTOP");
  const running = platform.deliver(id, "w=700,f=png");
  await expect.poll(() => engine.load.running).toBe(1);
  const waiting = platform.deliver(id, "w=701,f=png");
  await expect.poll(() => engine.load.waiting).toBe(1);
  const since = performance.now();
  await expect.poll(() => performance.now() - since).toBeGreaterThan(20);
  const waitedMs = performance.now() - since;
  process.kill(engine.pid!, "SIGCONT");
  const timesOf = async (answer: typeof running): Promise<Record<string, number>> => {
    const header = (await answer).headers.get("server-timing")!;
    return Object.fromEntries(
      [...header.matchAll(/(\w+);dur=([\d.]+)/g)].map(([, name, ms]) => [name, Number(ms)]),
    );
  };
  const [first, second] = [await timesOf(running), await timesOf(waiting)];
  for (const { queue, work, transform } of [first, second]) {
    expect([work, transform]).not.toContain(0);
    // The waiting of the response contains both; each is rounded.
    expect(transform! + 1).toBeGreaterThan(queue! + work!);
  }
  expect(first["work"]).toBeGreaterThan(waitedMs - 1);
  expect(second["queue"]).toBeGreaterThan(waitedMs - 1);
  const hit = await platform.deliver(id, "w=700,f=png");
  expect([hit.headers.get("cf-cache-status"), hit.headers.get("server-timing")]).toEqual(["HIT", null]);
});

it("aborts jobs whose clients have all disconnected", async () => {
  const platform = await start({ imageSlots: 1 });
  const id = await platform.store(await jpegOf(scenery(1600, 1200)));
  const { engine } = platform.services.images;
  const path = (options: string) =>
    `${platform.ready.delivery}/${platform.ready.account_hash}/${id}/${options}`;
  const first = platform.deliver(id, "w=2300,fit=contain,f=avif,blur=9");
  await expect.poll(() => engine.load.running).toBe(1);
  const leaving = Array.from({ length: 20 }, (_, i) => {
    const sent = request(path(`w=${1000 + i},f=avif`));
    sent.on("error", () => {});
    sent.end();
    return sent;
  });
  await expect.poll(() => engine.load.waiting).toBeGreaterThan(5);
  for (const sent of leaving) sent.destroy();
  await expect.poll(() => engine.load.waiting).toBe(0);
  expect((await first).status).toBe(200);
  await expect.poll(() => engine.load.running).toBe(0);
});

it("continues when the image process dies during a job", async () => {
  const platform = await start({ imageSlots: 1 });
  const id = await platform.store(await jpegOf(scenery(1600, 1200)));
  await platform.deliver(id, "w=10");
  const { engine } = platform.services.images;
  const before = engine.pid!;
  const underway = platform.deliver(id, "w=1500,f=avif");
  await expect.poll(() => engine.load.running).toBe(1);
  process.kill(before, "SIGKILL");
  expect((await underway).status).toBe(200);
  expect(engine.pid).not.toBe(before);
});

it("ends jobs that take too long, even when their process no longer responds", async () => {
  const engine = new ImageEngine({ slots: 1, timeLimitSeconds: 1, logger: pino({ level: "silent" }) });
  const path = join(folder, "photo.jpg");
  writeFileSync(path, await jpegOf(scenery(400, 300)));
  const picture = { path, probe: await probe(path), steps: [], focus: null };
  const output = {
    format: "webp",
    quality: 80,
    isBaseline: false,
    metadata: "none",
    isAnimated: false,
  } as const;
  const run = async () =>
    engine.run(
      { picture, output, target: undefined },
      { accountId: "a", cost: { cpuMs: 1, memoryBytes: 1 } },
    );
  expect((await run()).width).toBe(400);
  const stopped = engine.pid!;
  process.kill(stopped, "SIGSTOP");
  const startedAt = performance.now();
  await expect(run()).rejects.toMatchObject({ kind: "images.tooLong" });
  expect(performance.now() - startedAt).toBeGreaterThan(1000);
  expect((await run()).width).toBe(400);
  expect(engine.pid).not.toBe(stopped);
  await engine.close();
});

it.each(["srgb", "cmyk"])("reserves the memory that a progressive JPEG in %s takes", async (colors) => {
  const engine = new ImageEngine({ slots: 1, logger: pino({ level: "silent" }) });
  const path = join(folder, `${colors}.jpg`);
  const create = { width: 4000, height: 4000, channels: 3, background: "#345" } as const;
  const options = { progressive: true, chromaSubsampling: "4:4:4" };
  await sharp({ create }).toColourspace(colors).jpeg(options).toFile(path);
  const content = { ...(await probe(path)), sizeBytes: statSync(path).size };
  const { recipe, size } = planResult(parseOptions("w=40,f=png"), content, { avif: false, webp: false });
  const { memoryBytes } = estimate(content, recipe, size);
  const small = join(folder, "small.jpg");
  await sharp({ create: { ...create, width: 40, height: 40 } })
    .jpeg(options)
    .toFile(small);
  const mostBytes = async (source: string): Promise<number> => {
    const picture = {
      path: source,
      probe: await probe(source),
      steps: [{ kind: "transform" as const, transform: recipe.transform }],
      focus: null,
    };
    const job = { picture, output: recipe.output, target: undefined };
    await engine.run(job, { accountId: "a", cost: { cpuMs: 1, memoryBytes } });
    const [, kibibytes] = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${engine.pid}/status`, "latin1"))!;
    return Number(kibibytes) * 1024;
  };
  const before = await mostBytes(small);
  expect((await mostBytes(path)) - before).toBeLessThan(memoryBytes);
  await engine.close();
});

it("aborts its jobs when it is closed, and starts no process for them", async () => {
  const path = join(folder, "closing.jpg");
  writeFileSync(path, await jpegOf(scenery(1600, 1200)));
  const engine = new ImageEngine({ slots: 1, logger: pino({ level: "silent" }) });
  const picture = {
    path,
    probe: await probe(path),
    steps: [{ kind: "transform" as const, transform: { blur: 200 } }],
    focus: null,
  };
  const output = {
    format: "png",
    quality: undefined,
    isBaseline: false,
    metadata: "none",
    isAnimated: false,
  };
  const charge = { accountId: "a", cost: { cpuMs: 1, memoryBytes: 1 } };
  const jobs = [1, 2].map(() => engine.run({ picture, output, target: undefined } as never, charge));
  const ended = Promise.allSettled(jobs);
  await expect.poll(() => engine.pid).toBeDefined();
  await engine.close();
  expect((await ended).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  expect(engine.pid).toBeUndefined();
});

it("finds results after a restart, and recreates identical ones without them", async () => {
  const settings = { ephemeral: false, dataDir: join(folder, "kept"), accountId: "a".repeat(32) };
  const first = await startImagePlatform(settings);
  const id = await first.store(await jpegOf(scenery(800, 600)));
  const options = ["w=100,f=webp", "w=200,f=png", "w=700,f=png", "w=100,f=json"];
  const made = [];
  for (const each of options) made.push(await first.deliver(id, each));
  await first.close(1000);

  for (const status of ["HIT", "MISS"]) {
    // A lost result is recreated with the same bytes.
    if (status === "MISS") rmSync(join(settings.dataDir, "cache"), { recursive: true });
    const again = await startImagePlatform(settings);
    const run = vi.spyOn(again.services.images.engine, "run");
    for (const [i, each] of options.entries()) {
      const { headers, bytes } = await again.deliver(id, each);
      expect([headers.get("cf-cache-status"), headers.get("etag"), bytes.equals(made[i]!.bytes)]).toEqual([
        status,
        made[i]!.headers.get("etag"),
        true,
      ]);
    }
    expect(run).toHaveBeenCalledTimes(status === "HIT" ? 0 : options.length);
    await again.close(1000);
  }
});

describe("gravity=face", () => {
  it("follows a detector, and zoom crops closer", async () => {
    const detector = join(folder, "detector.mjs");
    writeFileSync(
      detector,
      `export const detect = (rgb, width, height) =>
        rgb.length === width * height * 3 ? [{ left: width * 0.7, top: height * 0.4, width: width * 0.2, height: height * 0.2 }] : [];`,
    );
    const platform = await start({ imageFaceDetector: detector });
    const source = await pngOf(
      painted(400, 100, (x) => (x >= 280 && x < 360 ? [250, 200, 180] : [30, 30, 200])),
    );
    const id = await platform.store(source);
    const at = async (options: string, x: number) =>
      (
        await raster(
          (await platform.deliver(id, `w=100,h=100,fit=cover,gravity=face,f=png,${options}`)).bytes,
        )
      ).at(x, 50);
    expect(colorDistance(await at("zoom=0", 50), [250, 200, 180])).toBeLessThan(5);
    expect(colorDistance(await at("zoom=0", 4), [30, 30, 200])).toBeLessThan(5);
    expect(colorDistance(await at("zoom=1", 4), [250, 200, 180])).toBeLessThan(5);
    const other = await platform.store(await pngOf(fourColors(64, 64)));
    expect((await platform.deliver(other, "w=32,h=16,fit=cover,gravity=face")).status).toBe(200);
  });
});
