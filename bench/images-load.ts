import { availableParallelism } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { atMost, median, pairedRatio, reported, residentMegabytes, type Goal } from "./lib/measure.ts";
import { fresh, type Section, type Stage } from "./images-cold.ts";
import {
  cpuOf,
  get,
  getWhole,
  imageProcess,
  memoryOf,
  peakMegabytes,
  quantile,
  timed,
} from "./images-lib.ts";

/** Concurrent requests: many for one picture, more transforms than slots, hits meanwhile, and memory afterwards. */
const cores = availableParallelism();

export async function crowdSection({ pid, url }: Stage): Promise<Section> {
  const goals: Goal[] = [];
  const rows: Section["rows"] = [];
  const one = (): Promise<unknown> => getWhole(`${url}/${fresh("f=webp")}`);
  await timed(5, 1, one);
  const singles: number[] = [];
  const crowds: number[] = [];
  const cpu = { one: [] as number[], crowd: [] as number[] };
  let unequal = 0;
  // Each round measures a crowd and one client for the same picture, so that other load of the machine affects both.
  for (let round = 0; round < 9; round++) {
    let used = cpuOf(pid);
    singles.push(quantile((await timed(3, 1, one)).each, 0.5));
    cpu.one.push((cpuOf(pid) - used) / 3);
    const path = `${url}/${fresh("f=webp")}`;
    used = cpuOf(pid);
    const startedAt = performance.now();
    const answers = await Promise.all(Array.from({ length: 32 }, () => getWhole(path)));
    crowds.push(performance.now() - startedAt);
    cpu.crowd.push(cpuOf(pid) - used);
    if (new Set(answers.map(({ bytes }) => bytes.length)).size !== 1) unequal += 1;
  }
  rows.push(
    ["one cold picture, ms", median(singles)],
    ["32 clients, the same cold picture, ms", median(crowds)],
    ["CPU of one, ms", median(cpu.one) / 1000],
    ["CPU of 32 at one, ms", median(cpu.crowd) / 1000],
  );
  goals.push(
    atMost("E9 time of 32 clients at one cold picture / one client", pairedRatio(crowds, singles), 1.2),
    atMost(
      "E9 CPU of 32 clients at one cold picture / one client (one decode: below 2)",
      pairedRatio(cpu.crowd, cpu.one),
      1.99,
    ),
    atMost("E9 crowds that did not all get the same bytes", unequal, 0),
  );

  const tails: number[] = [];
  const ideals: number[] = [];
  for (let round = 0; round < 3; round++) {
    ideals.push((16 / cores) * quantile((await timed(8, cores, one)).each, 0.5));
    tails.push(quantile((await timed(64, 16, one)).each, 0.99));
  }
  rows.push(
    ["16 at a time, p99 ms", median(tails)],
    ["ideal: as many rounds of all slots, ms", median(ideals)],
  );
  goals.push(atMost("E10 p99 of 16 at a time / ideal", pairedRatio(tails, ideals), 1.15));
  return { headings: ["", "measured"], rows, goals };
}

/** Hits while every slot writes AVIF. */
export async function isolationSection({ url }: Stage): Promise<Section> {
  const hit = `${url}/w=200,f=webp`;
  await getWhole(hit);
  await getWhole(hit);
  const hits = (seconds: number): Promise<number[]> =>
    (async () => {
      const each: number[] = [];
      const until = performance.now() + seconds * 1000;
      while (performance.now() < until) {
        const before = performance.now();
        await getWhole(hit);
        each.push(performance.now() - before);
        await delay(2);
      }
      return each.toSorted((a, b) => a - b);
    })();
  const idle = await hits(3);
  const over = new AbortController();
  const busy = Promise.all(
    Array.from({ length: cores * 4 }, async () => {
      while (!over.signal.aborted) {
        const { status } = await get(`${url}/w=1600,h=${2000 + next()},f=avif`);
        if (status !== 200) throw new Error(`a transform answered ${status}`);
      }
    }),
  );
  const loaded = await hits(10);
  over.abort();
  await busy;
  const [idleP99, loadedP99] = [quantile(idle, 0.99), quantile(loaded, 0.99)];
  return {
    headings: ["hits", "p50 ms", "p99 ms", "worst ms", "count"],
    rows: [
      ["idle", quantile(idle, 0.5), idleP99, idle.at(-1)!, idle.length],
      ["while every slot writes AVIF", quantile(loaded, 0.5), loadedP99, loaded.at(-1)!, loaded.length],
    ],
    goals: [
      atMost("E11 p99 of hits while every slot writes AVIF, ms", loadedP99, 20),
      reported("E11 the same / idle", loadedP99 / idleP99),
    ],
  };
}
let last = 0;
const next = (): number => (last = (last + 1) % 9000);

/** Memory after many different transforms. */
export async function memorySection({ pid, url }: Stage): Promise<Section> {
  const total = Number(process.env["BENCH_TRANSFORMS"] ?? 5000);
  const idle = memoryOf(pid);
  // The start of the image process, idle: one small job has loaded its libraries.
  await getWhole(`${url}/w=16,f=json`);
  await delay(1000);
  const base = residentMegabytes(imageProcess(pid)!);
  const kinds = [
    "f=webp",
    "f=jpeg",
    "f=avif",
    "f=png",
    "f=webp,fit=cover,gravity=auto",
    "f=jpeg,blur=20",
    "f=webp,rotate=90,sharpen=2",
  ];
  const rows: Section["rows"] = [];
  const marks: number[] = [];
  let peak = base;
  for (let done = 0; done < total; done += total / 5) {
    await timed(total / 5, 4, (i) => {
      // Each combination of width and quality is requested once, so every request is a transform.
      const n = done + i;
      const once = `w=${100 + (n % 400)},q=${30 + Math.floor(n / 400)},h=600`;
      return getWhole(`${url}/${once},${kinds[n % kinds.length]!}`);
    });
    peak = Math.max(peak, peakMegabytes(imageProcess(pid)!));
    await delay(2500);
    marks.push(residentMegabytes(imageProcess(pid)!));
    rows.push([`after ${done + total / 5} transforms`, marks.at(-1)!, memoryOf(pid)]);
  }
  rows.unshift(["idle start", base, idle]);
  return {
    headings: ["memory, MB", "image process", "all of Selvedge"],
    rows,
    goals: [
      atMost(
        `E12 memory of the image process after ${total} mixed transforms / its idle start`,
        marks.at(-1)! / base,
        3,
      ),
      atMost("E12 the last fifth / the second (flat)", marks.at(-1)! / marks[1]!, 1.1),
      atMost("E12 what the image process adds at its peak, MB for each slot", (peak - base) / cores, 120),
      reported("E12 memory of all of Selvedge / its idle start", memoryOf(pid) / idle),
    ],
  };
}
