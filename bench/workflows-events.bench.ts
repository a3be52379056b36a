import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { atMost, median, pairedRatio, printGoals, printTable } from "./lib/measure.ts";
import { installPeers, startOurs, startRestate } from "./workflows-lib.ts";

/**
 * Measures the time from sending an event until the code that waited for it resumes and calls a witness server; also
 * after ten thousand steps, whose results are replayed first.
 */
const rounds = Number(process.env["BENCH_ROUNDS"] ?? 5);
const eventsPerRound = 50;
/** Long enough for waiting instances to leave memory. */
const asleepMs = 1500;
const journaled = 10_000;

installPeers();
const arrivals = new Map<string, (at: number) => void>();
const witness = createServer((request, response) => {
  arrivals.get(request.url!.slice(1))?.(performance.now());
  response.end();
});
witness.keepAliveTimeout = 60_000;
await new Promise<void>((resolve) => witness.listen(0, "127.0.0.1", resolve));
const url = `http://127.0.0.1:${(witness.address() as AddressInfo).port}/`;

const ours = await startOurs(
  ["--private-networks", "all"],
  `export class Waiter extends WorkflowEntrypoint {
  async run(event, step) {
    const { payload } = await step.waitForEvent("go", { type: "go" });
    await (await fetch(event.payload.witness + payload)).text();
  }
}
export class Long extends WorkflowEntrypoint {
  async run(event, step) {
    await steps(step, event.payload.steps);
    for (let i = 0; i < 100; i++) {
      const { payload } = await step.waitForEvent("go", { type: "go" });
      await (await fetch(event.payload.witness + payload)).text();
    }
  }
}`,
  ["Waiter", "Long"],
);
const restate = await startRestate();
const path = "/workflows/Waiter/instances";
const engines = {
  selvedge: {
    start: async (id: string) => void (await ours.call("POST", path, { id, params: { witness: url } })),
    send: async (id: string) =>
      void (await ours.call("POST", `${path}/${id}/events`, { type: "go", payload: id })),
  },
  restate: {
    start: async (id: string) => restate.post(`/Waiting/${id}/run/send`, url),
    send: async (id: string) => restate.post(`/Waiting/${id}/send`, id),
  },
};
type Name = keyof typeof engines;
const times: Record<Name, { p50: number[]; p99: number[] }> = {
  selvedge: { p50: [], p99: [] },
  restate: { p50: [], p99: [] },
};

for (let round = -1; round < rounds; round++) {
  const names = ["selvedge", "restate"] as const;
  const ids = Array.from({ length: eventsPerRound }, (_, i) => `e${round}-${i}`);
  for (const id of ids) for (const name of names) await engines[name].start(id);
  await delay(asleepMs);
  const took = { selvedge: [] as number[], restate: [] as number[] };
  for (const id of ids) {
    // Alternates between the engines, so that other load of the machine affects both alike.
    for (const name of names) {
      const arrived = new Promise<number>((resolve) => arrivals.set(id, resolve));
      const start = performance.now();
      await engines[name].send(id);
      took[name].push((await arrived) - start);
    }
  }
  if (round < 0) continue;
  for (const name of names) {
    took[name].sort((a, b) => a - b);
    times[name].p50.push(median(took[name]));
    times[name].p99.push(took[name][Math.floor(eventsPerRound * 0.98)]!);
  }
}

/** Wakes one instance with this many steps, once per round. */
async function wakes(steps: number): Promise<number> {
  const longs = "/workflows/Long/instances";
  const { id } = await ours.call<{ id: string }>("POST", longs, { params: { witness: url, steps } });
  const took: number[] = [];
  for (let wake = 0; wake < 1 + rounds; wake++) {
    // Waits until the instance has left memory; its steps take a while at first.
    while (!(await isAsleep(`${longs}/${id}`))) await delay(100);
    const arrived = new Promise<number>((resolve) => arrivals.set(`${id}-${wake}`, resolve));
    const start = performance.now();
    await ours.call("POST", `${longs}/${id}/events`, { type: "go", payload: `${id}-${wake}` });
    took.push((await arrived) - start);
  }
  return median(took.slice(1));
}
const isAsleep = async (instance: string): Promise<boolean> =>
  (await ours.call<{ status: string }>("GET", `${instance}/status`)).status === "waiting";
const wakeMs = { short: await wakes(1), long: await wakes(journaled) };
await ours.stop();
await restate.stop();
witness.close();
witness.closeAllConnections();

printTable(
  ["engine", "event to resume p50 ms", "p98 ms"],
  (["selvedge", "restate"] as const).map((name) => [name, median(times[name].p50), median(times[name].p99)]),
);
printTable(
  ["steps in the journal", "event to resume p50 ms"],
  [
    ["1", wakeMs.short],
    [String(journaled), wakeMs.long],
  ],
);
printGoals([
  atMost("G9 event to resume, p50: ours / restate", pairedRatio(times.selvedge.p50, times.restate.p50), 0.65),
  atMost("G9 event to resume, p98: ours / restate", pairedRatio(times.selvedge.p99, times.restate.p99), 0.65),
  atMost(`G11 ms to resume after ${journaled} steps`, wakeMs.long, 150),
  atMost("G11 µs to replay a step", ((wakeMs.long - wakeMs.short) / (journaled - 1)) * 1000, 15),
]);
