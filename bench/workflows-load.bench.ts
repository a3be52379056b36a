import { once } from "node:events";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import { Client } from "undici";
import { benchToken } from "./lib/child.ts";
import { atLeast, atMost, median, pairedRatio, printGoals, printTable, reported } from "./lib/measure.ts";
import { installPeers, startDbos, startOurs, startRestate, type SleepingEngine } from "./workflows-lib.ts";

/**
 * Measures durable creations per second of 64 clients, and the latency of a status request while 128 workflows run.
 * The status client is a thread of its own, so that the load does not delay it.
 */
const rounds = Number(process.env["BENCH_ROUNDS"] ?? 5);
const creators = 64;
const runners = 128;
const roundMs = 2000;
const restMs = 100;
const idleShare = 0.1;
const asksMs = 10_000;
const pauseMs = 5;

interface Asking {
  url: string;
  folder: string;
}
interface Asked {
  status: number[];
  sync: number[];
}

/** Alternates between requesting a status and flushing four kilobytes to the disk. */
async function ask({ url, folder }: Asking): Promise<Asked> {
  const { origin, pathname } = new URL(url);
  const client = new Client(origin);
  const file = await open(join(folder, "bench-sync"), "w");
  const page = new Uint8Array(4096);
  const asked: Asked = { status: [], sync: [] };
  const timed = async (times: number[], run: () => Promise<unknown>): Promise<void> => {
    const start = performance.now();
    await run();
    times.push(performance.now() - start);
    await delay(pauseMs);
  };
  const headers = { authorization: `Bearer ${benchToken}` };
  for (const end = performance.now() + asksMs; performance.now() < end;) {
    await timed(asked.status, async () =>
      (await client.request({ method: "GET", path: pathname, headers })).body.dump(),
    );
    await timed(asked.sync, async () => {
      await file.write(page);
      await file.datasync();
    });
  }
  await file.close();
  await client.close();
  return asked;
}

async function during(limitMs: number, concurrency: number, run: () => Promise<void>): Promise<number> {
  const start = performance.now();
  let done = 0;
  await Promise.all(
    Array.from({ length: concurrency }, async () => {
      for (; performance.now() - start < limitMs; done++) await run();
    }),
  );
  return done / ((performance.now() - start) / 1000);
}

/** Time for an engine's instances to reach their sleep, so that they do not compete with the next engine. */
async function rest(engine: SleepingEngine): Promise<void> {
  for (let before = -Infinity; ;) {
    const now = engine.cpuMicroseconds();
    if (now - before < restMs * 1000 * idleShare) return;
    before = now;
    await delay(restMs);
  }
}

async function main(): Promise<void> {
  installPeers();
  const ours = await startOurs();
  const { id } = await ours.call<{ id: string }>("POST", "/workflows/One/instances?wait=10", {});
  await during(roundMs, runners, async () => ours.run(10)); // warms up
  const asking: Asking = {
    url: ours.url(`/workflows/One/instances/${id}/status`),
    folder: ours.dataDir,
  };
  const worker = new Worker(new URL(import.meta.url), { workerData: asking });
  const answer = once(worker, "message") as Promise<[Asked]>;
  let perSecond = 0;
  const load = during(asksMs, runners, async () => ours.run(10)).then((measured) => (perSecond = measured));
  const [asked] = await answer;
  await load;

  const engines: SleepingEngine[] = [ours, await startRestate(), await startDbos()];
  const created = new Map<string, number[]>(engines.map(({ name }) => [name, []]));
  for (let round = -1; round < rounds; round++) {
    for (const engine of round % 2 === 0 ? engines : engines.toReversed()) {
      const rate = await during(roundMs, creators, async () => engine.begin());
      if (round >= 0) created.get(engine.name)!.push(rate);
      await rest(engine);
    }
  }
  for (const engine of engines) await engine.stop();

  const at = (times: number[], share: number): number =>
    times.toSorted((a, b) => a - b)[Math.floor((times.length - 1) * share)]!;
  printTable(
    [`at ${Math.round(perSecond)} workflows of 10 steps a second`, "p50 ms", "p99 ms"],
    [
      ["GET status", at(asked.status, 0.5), at(asked.status, 0.99)],
      ["4 KiB to the disk", at(asked.sync, 0.5), at(asked.sync, 0.99)],
    ],
  );
  printTable(
    ["engine", "creates per second, 64 clients"],
    engines.map(({ name }) => [name, median(created.get(name)!)]),
  );
  for (const { name, durability } of engines) process.stdout.write(`${name}: ${durability}\n`);
  const [mine, restate, dbos] = engines.map(({ name }) => created.get(name)!);
  printGoals([
    atMost("G13 GET status, p99 ms beyond the disk's", at(asked.status, 0.99) - at(asked.sync, 0.99), 25),
    reported("statuses asked for", asked.status.length),
    atLeast("G6 creates per second: ours / restate", pairedRatio(mine!, restate!), 2),
    atLeast("G6 creates per second: ours / dbos", pairedRatio(mine!, dbos!), 8),
  ]);
}

if (isMainThread) await main();
else parentPort!.postMessage(await ask(workerData as Asking), []);
