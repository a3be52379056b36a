import { fork, spawnSync, type ChildProcess } from "node:child_process";
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import sharp from "sharp";
import { allocator } from "../src/products/images/engine/image-process.ts";
import { startPeer } from "./lib/child.ts";
import { atLeast, atMost, median, pairedRatio, reported, type Goal } from "./lib/measure.ts";
import {
  cpuOf,
  getWhole,
  imageProcess,
  memoryOf,
  peakMegabytes,
  peerFolder,
  quantile,
  ssim,
  timed,
  upload,
  type Timed,
} from "./images-lib.ts";
import type { Ready } from "../src/ready.ts";
import type { BareJob } from "./peers/bare-sharp.ts";

/** Compares transforms that are not cached with sharp, IPX and vipsthumbnail doing the same work. */

export interface Section {
  headings: string[];
  rows: (string | number)[][];
  goals: Goal[];
}
export interface Stage {
  pid: number;
  ready: Ready;
  stop(): Promise<void>;
  /** The URL of the picture, without the options. */
  url: string;
  path: string;
  /** A small version of the picture, for warming up. */
  small: { url: string; path: string };
}
type Format = BareJob["format"];
const cores = availableParallelism();

interface Bare {
  pid: number;
  run(job: BareJob): Promise<number>;
  stop(): void;
}
/** The bare library in a process with the same allocator and as many threads. */
export function startBare(): Bare {
  const child: ChildProcess = fork(join(peerFolder, "bare-sharp.ts"), [], {
    env: {
      ...process.env,
      UV_THREADPOOL_SIZE: String(cores + 4),
      ...allocator(cores),
    },
  });
  const waiting = new Map<number, { resolve: (bytes: number) => void; reject: (error: Error) => void }>();
  child.on("message", ({ id, length, error }: { id: number; length: number; error?: string }) => {
    const { resolve, reject } = waiting.get(id)!;
    waiting.delete(id);
    if (error === undefined) resolve(length);
    else reject(new Error(error));
  });
  let last = 0;
  return {
    pid: child.pid!,
    run: (job) =>
      new Promise((resolve, reject) => {
        waiting.set(++last, { resolve, reject });
        child.send({ id: last, job });
      }),
    stop: () => void child.kill(),
  };
}

/** Options for the same work that no request has used yet: the height is too large to have an effect. */
let asked = 0;
export const fresh = (options: string): string => `w=800,h=${2000 + (asked = (asked + 1) % 9000)},${options}`;

/** Sends requests to all sides until V8 has compiled their hot code. */
async function warmUp(
  ...calls: readonly ((options: { width: number; height: number }) => Promise<unknown>)[]
) {
  for (const call of calls)
    await timed(1000, 4, (i) => call({ width: 20 + (i % 100), height: 200 + Math.floor(i / 100) }));
}

interface Side {
  pid: number;
  call: (index: number) => Promise<unknown>;
}
interface Measured {
  cpuMs: number[];
  perSecond: number[];
  p50: number[];
}
/**
 * Measures the sides in turn, in short rounds, so that other load of the machine affects both. The median of many pairs
 * is steady. The first rounds only warm up.
 */
const warmUpRounds = 3;
async function compare<S extends string>(
  sides: Record<S, Side>,
  { rounds, count, concurrency }: { rounds: number; count: number; concurrency: number },
): Promise<Record<S, Measured>> {
  const names = Object.keys(sides) as S[];
  const found = Object.fromEntries(
    names.map((name): [S, Measured] => [name, { cpuMs: [], perSecond: [], p50: [] }]),
  ) as Record<S, Measured>;
  for (let round = -warmUpRounds; round < rounds; round++) {
    for (const name of round % 2 === 0 ? names : names.toReversed()) {
      const { pid, call } = sides[name];
      const before = cpuOf(pid);
      const { seconds, each }: Timed = await timed(count, concurrency, call);
      if (round < 0) continue;
      found[name].cpuMs.push((cpuOf(pid) - before) / 1000 / count);
      found[name].perSecond.push(count / seconds);
      found[name].p50.push(quantile(each, 0.5));
    }
  }
  return found;
}

/** Disables intermediate copies, so that every size is made from the original. */
const fromImages = ["--image-intermediate-pixels", "0"];

export async function coldSection(
  asItComes: Stage,
  start: (...args: string[]) => Promise<Stage>,
): Promise<Section> {
  const stage = await start(...fromImages);
  const { pid, url, path } = stage;
  const bare = startBare();
  const { small } = asItComes;
  await warmUp(
    ({ width, height }) => getWhole(`${small.url}/w=${width},h=${height},f=webp`),
    ({ width, height }) => getWhole(`${stage.small.url}/w=${width},h=${height},f=webp`),
    ({ width }) => bare.run({ path: small.path, width, format: "webp", settings: "ours" }),
  );
  const rows: Section["rows"] = [];
  const goals: Goal[] = [];
  const plan: [Format, number][] = [
    ["webp", 1],
    ["webp", cores],
    ["jpeg", 1],
    ["jpeg", cores],
    ["avif", 1],
    ["avif", cores],
  ];
  for (const [format, concurrency] of plan) {
    const found = await compare(
      {
        "from the image": { pid, call: () => getWhole(`${url}/${fresh(`f=${format}`)}`) },
        "from its intermediate copy": {
          pid: asItComes.pid,
          call: () => getWhole(`${asItComes.url}/${fresh(`f=${format}`)}`),
        },
        sharp: { pid: bare.pid, call: () => bare.run({ path, width: 800, format, settings: "ours" }) },
      },
      { rounds: 40, count: 2 * concurrency, concurrency },
    );
    for (const [side, { cpuMs, perSecond, p50 }] of Object.entries(found))
      rows.push([
        `${format}, ${concurrency} at a time, ${side}`,
        median(cpuMs),
        median(perSecond),
        median(p50),
      ]);
    const library = found.sharp;
    for (const way of ["from the image", "from its intermediate copy"] as const) {
      const what = `12 megapixels → 800 px ${format}, ${concurrency} at a time, ${way} / bare sharp`;
      goals.push(atMost(`E1 CPU, ${what}`, pairedRatio(found[way].cpuMs, library.cpuMs), 1.05));
      goals.push(atMost(`E1 p50, ${what}`, pairedRatio(found[way].p50, library.p50), 1.1));
      if (concurrency < cores) continue;
      const perSecond = pairedRatio(found[way].perSecond, library.perSecond);
      goals.push(atLeast(`E1 images a second, ${what}`, perSecond, 0.95));
    }
  }

  // The result of a client that asks only for a width, compared with the library's own.
  const byDefault = await compare(
    {
      webp: { pid, call: () => getWhole(`${url}/${fresh("fit=scale-down")}`, { accept: "image/webp" }) },
      avif: {
        pid,
        call: () => getWhole(`${url}/${fresh("fit=scale-down")}`, { accept: "image/avif,image/webp" }),
      },
      library: {
        pid: bare.pid,
        call: () => bare.run({ path, width: 800, format: "webp", settings: "defaults" }),
      },
    },
    { rounds: 30, count: 3 * cores, concurrency: cores },
  );
  for (const [side, { cpuMs, perSecond, p50 }] of Object.entries(byDefault))
    rows.push([`defaults, ${side}`, median(cpuMs), median(perSecond), median(p50)]);
  const { webp, avif, library } = byDefault;
  goals.push(
    atMost("E2 CPU, automatic WebP / sharp's default WebP", pairedRatio(webp.cpuMs, library.cpuMs), 0.75),
  );
  goals.push(
    atMost("E2 CPU, automatic AVIF / sharp's default WebP", pairedRatio(avif.cpuMs, library.cpuMs), 1.1),
  );
  goals.push(await bytesAtEqualLooks(url, path));
  goals.push(...(await focusGoals(stage)));
  bare.stop();
  await stage.stop();
  return { headings: ["", "CPU ms each", "per second", "p50 ms"], rows, goals };
}

/** Compares the size of an automatic AVIF with that of a WebP of equal SSIM, interpolated between WebP qualities. */
async function bytesAtEqualLooks(url: string, path: string): Promise<Goal> {
  const avif = (await getWhole(`${url}/w=800`, { accept: "image/avif" })).bytes;
  const reference = await sharp(path).autoOrient().resize({ width: 800 }).png().toBuffer();
  const wanted = await ssim(avif, reference);
  const points: { bytes: number; looks: number }[] = [];
  for (let quality = 50; quality <= 98; quality += 2) {
    const bytes = await sharp(reference).webp({ quality }).toBuffer();
    points.push({ bytes: bytes.length, looks: await ssim(bytes, reference) });
  }
  const above = points.findIndex(({ looks }) => looks >= wanted);
  if (above < 1) throw new Error(`No WebP quality has the SSIM of the AVIF: ${wanted}`);
  const [low, high] = [points[above - 1]!, points[above]!];
  const share = (wanted - low.looks) / (high.looks - low.looks);
  const equal = low.bytes + share * (high.bytes - low.bytes);
  process.stdout.write(
    `\nautomatic AVIF: ${avif.length} bytes, SSIM ${wanted.toFixed(4)}; WebP (effort 4) of the same SSIM: ${Math.round(equal)} bytes\n`,
  );
  return atMost("E2 bytes, automatic AVIF / WebP of equal SSIM", avif.length / equal, 0.85);
}

async function focusGoals({ pid, ready, url, path }: Stage): Promise<Goal[]> {
  // Both sides request the same sizes, so that their work differs only in the position of the crop.
  const of = (gravity: string, urlOf: (call: number) => string = () => url) => {
    let calls = 0;
    return () =>
      getWhole(`${urlOf(calls)}/w=${600 + (calls++ % 100)},h=500,fit=cover,f=webp,gravity=${gravity}`);
  };
  // A byte appended to the picture makes it a different one, so that no cache has it.
  const rounds = 16;
  const bytes = readFileSync(path);
  const others: string[] = [];
  for (let i = 0; i < (warmUpRounds + rounds) * cores; i++) {
    const id = await upload(ready, Buffer.concat([bytes, Buffer.of(i)]));
    others.push(`${ready.delivery}/${ready.account_hash}/${id}`);
  }
  const first = await compare(
    {
      auto: { pid, call: of("auto", (call) => others[call]!) },
      centre: { pid, call: of("center", (call) => others[call]!) },
    },
    { rounds, count: cores, concurrency: cores },
  );
  const found = await compare(
    { auto: { pid, call: of("auto") }, centre: { pid, call: of("center") } },
    { rounds: 24, count: 2 * cores, concurrency: cores },
  );
  return [
    atMost(
      "E15 CPU, gravity=auto / centre, the first time",
      pairedRatio(first.auto.cpuMs, first.centre.cpuMs),
      1.1,
    ),
    atMost(
      "E15 CPU, gravity=auto / centre, focus known",
      pairedRatio(found.auto.cpuMs, found.centre.cpuMs),
      1.02,
    ),
  ];
}

/** Installs IPX next to its server script and starts it. */
export async function ipxSection(
  { pid, url, path, small }: Stage,
  start: (...args: string[]) => Promise<Stage>,
): Promise<Section> {
  const folder = join(peerFolder, "ipx");
  if (!existsSync(join(folder, "node_modules/ipx"))) {
    const { status } = spawnSync("npm", ["install", "--no-audit", "--no-fund", "--no-package-lock"], {
      cwd: folder,
    });
    if (status !== 0) {
      process.stdout.write("IPX could not be installed (no network?): not compared.\n");
      return { headings: ["", ""], rows: [], goals: [] };
    }
  }
  const images = mkdtempSync(join(tmpdir(), "selvedge-ipx-"));
  copyFileSync(path, join(images, "photo.jpg"));
  copyFileSync(small.path, join(images, "small.jpg"));
  const ipx = await startPeer("ipx/server.js", images);
  const direct = await start(...fromImages);
  const bare = startBare();
  await warmUp(
    ({ width, height }) => getWhole(`${small.url}/w=${width},h=${height},q=80,f=webp`),
    ({ width, height }) => getWhole(`${direct.small.url}/w=${width},h=${height},q=80,f=webp`),
    ({ width }) => bare.run({ path: small.path, width, format: "webp", settings: "ours" }),
    ({ width }) => getWhole(`http://127.0.0.1:${ipx.port}/f_webp,w_${width},q_80/small.jpg`),
  );
  const rows: Section["rows"] = [];
  const goals: Goal[] = [];
  const idle = memoryOf(pid) - memory(imageProcess(pid));
  let most = 0;
  let theirs = 0;
  for (const format of ["webp", "jpeg"] as const) {
    const found = await compare(
      {
        selvedge: { pid, call: () => getWhole(`${url}/${fresh(`q=80,f=${format}`)}`) },
        "selvedge, from the image": {
          pid: direct.pid,
          call: () => getWhole(`${direct.url}/${fresh(`q=80,f=${format}`)}`),
        },
        // The lower limit for any server that uses this library.
        library: {
          pid: bare.pid,
          call: () => bare.run({ path, width: 800, format, settings: "ours", quality: 80 }),
        },
        ipx: {
          pid: ipx.pid,
          call: () => getWhole(`http://127.0.0.1:${ipx.port}/f_${format},w_800,q_80/photo.jpg`),
        },
      },
      { rounds: 30, count: 3 * cores, concurrency: cores },
    );
    most = Math.max(most, memoryOf(pid));
    theirs = Math.max(theirs, peakMegabytes(ipx.pid));
    for (const [side, { cpuMs, perSecond, p50 }] of Object.entries(found))
      rows.push([
        `${format} q80, ${cores} at a time, ${side}`,
        median(cpuMs),
        median(perSecond),
        median(p50),
      ]);
    goals.push(
      atLeast(
        `E4 images a second, ${format}, Selvedge / IPX`,
        pairedRatio(found.selvedge.perSecond, found.ipx.perSecond),
        1.15,
      ),
      reported(
        `E4 images a second, ${format}, Selvedge from the image (as the first two sizes) / IPX`,
        pairedRatio(found["selvedge, from the image"].perSecond, found.ipx.perSecond),
      ),
      reported(
        `E4 images a second, ${format}, bare sharp / IPX`,
        pairedRatio(found.library.perSecond, found.ipx.perSecond),
      ),
      reported(`E4 CPU, ${format}, IPX / Selvedge`, pairedRatio(found.ipx.cpuMs, found.selvedge.cpuMs)),
      reported(`E4 CPU, ${format}, IPX / bare sharp`, pairedRatio(found.ipx.cpuMs, found.library.cpuMs)),
    );
  }
  const own = peakMegabytes(imageProcess(pid)!);
  rows.push(["memory MB: image process at its peak, IPX at its peak, Selvedge in all", own, theirs, most]);
  goals.push(atMost("E4 peak memory, image process / IPX", own / theirs, 0.7));
  goals.push(reported("E4 memory, all of Selvedge (API, DNS, edge, images) / IPX", most / theirs));
  goals.push(reported("E4 memory of the platform without its image process, MB", idle));
  bare.stop();
  await direct.stop();
  await ipx.stop();
  rmSync(images, { recursive: true, force: true });
  return { headings: ["", "CPU ms each", "per second", "p50 ms"], rows, goals };
}

const memory = (pid: number | undefined): number => (pid === undefined ? 0 : memoryOf(pid));

/** Compares with libvips' own program, if installed: one process per picture, with the same encoder settings. */
export async function thumbnailSection(
  _: Stage,
  start: (...args: string[]) => Promise<Stage>,
): Promise<Section> {
  if (spawnSync("vipsthumbnail", ["--version"]).status !== 0) {
    process.stdout.write("vipsthumbnail is not installed (Debian package libvips-tools): not compared.\n");
    return { headings: ["", ""], rows: [], goals: [] };
  }
  const rows: Section["rows"] = [];
  const goals: Goal[] = [];
  const out = join(mkdtempSync(join(tmpdir(), "selvedge-vips-")), "out");
  const stage = await start(...fromImages);
  const { pid, url, path, small } = stage;
  const bare = startBare();
  await warmUp(
    ({ width, height }) => getWhole(`${small.url}/w=${width},h=${height},f=webp`),
    ({ width }) => bare.run({ path: small.path, width, format: "webp", settings: "ours" }),
  );
  // The CPU time of ended processes is counted in whole ticks: many in a round make the error small.
  const count = 8;
  for (const [format, suffix, goal] of [
    ["webp", "webp[Q=85,effort=2]", 0.65],
    ["baseline-jpeg", "jpg[Q=85,optimize-coding]", 0.5],
  ] as const) {
    const found: Record<"ours" | "library" | "theirs", number[]> = { ours: [], library: [], theirs: [] };
    for (let round = 0; round < 9; round++) {
      const children = childCpuMs();
      for (let i = 0; i < count; i++)
        spawnSync("vipsthumbnail", [path, "-s", "800x", "-o", `${out}.${suffix}`], {
          env: { ...process.env, VIPS_CONCURRENCY: "1" },
        });
      found.theirs.push((childCpuMs() - children) / count);
      for (const [side, sidePid, call] of [
        ["ours", pid, () => getWhole(`${url}/${fresh(`f=${format}`)}`)],
        ["library", bare.pid, () => bare.run({ path, width: 800, format, settings: "ours" })],
      ] as const) {
        const start = cpuOf(sidePid);
        for (let i = 0; i < count; i++) await call();
        found[side].push((cpuOf(sidePid) - start) / 1000 / count);
      }
    }
    const { ours, library, theirs } = found;
    rows.push([`${format}, Selvedge`, median(ours)], [`${format}, bare sharp`, median(library)]);
    rows.push([`${format}, vipsthumbnail`, median(theirs)]);
    goals.push(atMost(`E3 CPU, ${format}, Selvedge / vipsthumbnail`, pairedRatio(ours, theirs), goal));
    goals.push(reported(`E3 CPU, ${format}, bare sharp / vipsthumbnail`, pairedRatio(library, theirs)));
  }
  bare.stop();
  await stage.stop();
  return { headings: ["", "CPU ms each"], rows, goals };
}

/** CPU time of children that have ended, from this process's own statistics. */
function childCpuMs(): number {
  // utime and stime of waited-for children are fields 16 and 17, in ticks of 10 ms.
  const fields = readFileSync("/proc/self/stat", "utf8").split(") ")[1]!.split(" ");
  return (Number(fields[13]) + Number(fields[14])) * 10;
}
