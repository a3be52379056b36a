import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { atMost, median, pairedRatio, printGoals, printTable, reported } from "./lib/measure.ts";
import { installPeers, startOurs, startRestate, type Mortal } from "./workflows-lib.ts";

/**
 * Kills (-9) an engine while workflows run, alternating between ours (the main process and the cells, which run the
 * steps) and Restate (its server; the service process, which runs the steps, stays). An outside witness server gets a
 * request when a step begins, which proves that the code has the previous result, and when the code ends.
 */
const rounds = Number(process.env["BENCH_ROUNDS"] ?? 5);
const instances = Number(process.env["BENCH_INSTANCES"] ?? 500);
const steps = 10;
const stepMs = 200;
const doneMsMax = 60_000;
const lookEveryMs = 1;

/** Progress of each instance: the step that began last, or the number of steps when its code has ended. */
const furthest = new Map<string, number>();
const progress = { acknowledged: 0, executedAgain: 0, repeated: 0, lastAt: 0, firstAt: 0 };
const witness = createServer((request, response) => {
  const [, id, at] = request.url!.split("/") as [string, string, string];
  const step = Number(at);
  const before = furthest.get(id) ?? 0;
  if (step < before) progress.executedAgain++;
  else if (furthest.has(id) && step === before) progress.repeated++;
  else {
    furthest.set(id, step);
    progress.acknowledged += step - before;
  }
  progress.lastAt = performance.now();
  progress.firstAt ||= progress.lastAt;
  response.end();
});
witness.keepAliveTimeout = 60_000;
await new Promise<void>((resolve) => witness.listen(0, "127.0.0.1", resolve));
const url = `http://127.0.0.1:${(witness.address() as AddressInfo).port}`;
const params = { witness: url, steps, stepMs };

installPeers();
const ours = await startOurs(
  ["--private-networks", "all"],
  `export class Crashing extends WorkflowEntrypoint {
  async run({ instanceId, payload: { witness, steps, stepMs } }, step) {
    const report = async (at) => (await fetch([witness, instanceId, at].join("/"))).text();
    let sum = 0;
    for (let i = 0; i < steps; i++)
      sum += await step.do("s" + i, async () => {
        await report(i);
        await new Promise((resolve) => setTimeout(resolve, stepMs));
        return i;
      });
    await report(steps);
    return sum;
  }
}`,
  ["Crashing"],
);
const restate = await startRestate();

interface Crashing extends Mortal {
  name: "selvedge" | "restate";
  /** Creates instances; resolves when all are durable. */
  create(ids: readonly string[]): Promise<void>;
  /** The result of the instance; undefined as long as it runs. */
  output(id: string): Promise<unknown>;
}
const path = "/workflows/Crashing/instances";
const engines: readonly Crashing[] = [
  {
    name: "selvedge",
    async create(ids) {
      for (let at = 0; at < ids.length; at += 100) {
        const batch = ids.slice(at, at + 100).map((instance_id) => ({ instance_id, params }));
        await ours.call("POST", `${path}/batch`, batch);
      }
    },
    output: async (id) => (await ours.call<{ output: unknown }>("GET", `${path}/${id}/status`)).output,
    kill: async () => ours.kill(),
    restart: async () => ours.restart(),
  },
  {
    name: "restate",
    async create(ids) {
      await Promise.all(ids.map(async (id) => restate.post(`/Crashing/${id}/run/send`, params)));
    },
    output: async (id) => restate.output("Crashing", id),
    kill: async () => restate.kill(),
    restart: async () => restate.restart(),
  },
];

interface Figures {
  readyMs: number;
  firstStepMs: number;
  doneMs: number;
  lost: number;
  executedAgain: number;
  /** Steps in flight at the kill, whose results had not come back. */
  repeated: number;
}

async function until(isSo: () => boolean, timeoutMs = doneMsMax): Promise<boolean> {
  for (const end = performance.now() + timeoutMs; !isSo(); await delay(lookEveryMs))
    if (performance.now() > end) return false;
  return true;
}

async function crash(engine: Crashing, round: number): Promise<Figures> {
  furthest.clear();
  Object.assign(progress, { acknowledged: 0, executedAgain: 0, repeated: 0 });
  const ids = Array.from({ length: instances }, (_, i) => `c${round}-${i}`);
  await engine.create(ids);
  const all = instances * steps;
  await until(() => progress.acknowledged >= all / 2);
  await delay(stepMs / 2); // in the middle of the next one
  await engine.kill();
  // Runs in a surviving process are over when no step has begun for longer than a step takes.
  await until(() => performance.now() - progress.lastAt > 2 * stepMs);
  const restartedAt = performance.now();
  progress.firstAt = 0;
  let readyMs = 0;
  const started = engine.restart().then(() => (readyMs = performance.now() - restartedAt));
  await until(() => progress.acknowledged === all);
  const doneMs = performance.now() - restartedAt;
  await started;
  const sum = (steps * (steps - 1)) / 2;
  let lost = 0;
  for (const id of ids) {
    let output: unknown;
    for (const end = performance.now() + 1000; performance.now() < end; await delay(10))
      if ((output = await engine.output(id)) === sum) break;
    if (output !== sum) lost++;
  }
  return {
    readyMs,
    firstStepMs: progress.firstAt - restartedAt,
    doneMs,
    lost,
    executedAgain: progress.executedAgain,
    repeated: progress.repeated,
  };
}

const measured = { selvedge: [] as Figures[], restate: [] as Figures[] };
for (let round = -1; round < rounds; round++)
  for (const engine of round % 2 === 0 ? engines : engines.toReversed()) {
    const figures = await crash(engine, round);
    if (round >= 0) measured[engine.name].push(figures); // the first one warms up
  }
await ours.stop();
await restate.stop();
witness.close();
witness.closeAllConnections();

const of = (name: Crashing["name"], pick: keyof Figures): number[] =>
  measured[name].map((each) => each[pick]);
const sum = (name: Crashing["name"], pick: keyof Figures): number => of(name, pick).reduce((a, b) => a + b);
printTable(
  [
    `kill -9 with ${instances} in flight, ${steps} steps of ${stepMs} ms, half of them done`,
    "restart to first step ms",
    "to all done ms",
    "lost",
    "executed again",
    "in flight, repeated",
  ],
  engines.map(({ name }) => [
    name,
    median(of(name, "firstStepMs")),
    median(of(name, "doneMs")),
    sum(name, "lost"),
    sum(name, "executedAgain"),
    median(of(name, "repeated")),
  ]),
);
process.stdout.write("selvedge: the main process and all of its cells were killed\n");
process.stdout.write("restate: its server was killed; the process of its service stayed\n");
const ratio = (pick: keyof Figures): number => pairedRatio(of("selvedge", pick), of("restate", pick));
printGoals([
  atMost(`G10 lost, of ${rounds * instances}`, sum("selvedge", "lost"), 0),
  atMost("G10 executed again after its result had come back", sum("selvedge", "executedAgain"), 0),
  atMost("G10 restart to first step: ours / restate", ratio("firstStepMs"), 0.6),
  atMost("G10 restart to all done: ours / restate", ratio("doneMs"), 1),
  reported("G10 restart to ready, ours, ms", median(of("selvedge", "readyMs"))),
]);
