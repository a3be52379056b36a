import { pino } from "pino";
import { expect, it, onTestFinished } from "vitest";
import { addObjectNamespaces } from "../../../../test/helpers/object-namespaces.ts";
import { openStorage } from "../../../platform/storage/storage.ts";
import type { ActingObject } from "../../../sandbox/objects/standing.ts";
import type { AlarmOutcome } from "../../../sandbox/protocol.ts";
import { AlarmLine, namespaceRunningMax, runningMax } from "./alarm-line.ts";
import { loadAlarms } from "./alarm-store.ts";
import { Alarms, retriesMax, retryDelayMs } from "./alarms.ts";

it("an alarm is tried again after 2 s, and after twice the time for each further attempt", () => {
  const delays = Array.from({ length: retriesMax }, (_, i) => retryDelayMs(i + 1, undefined, 0));
  expect(delays).toEqual([2000, 4000, 8000, 16_000, 32_000, 64_000]);
  expect(retryDelayMs(1, undefined, 1)).toBe(2500);
  expect(retryDelayMs(1000, undefined, 0)).toBe(1_024_000);
});

interface Running extends ActingObject {
  end: (outcome: AlarmOutcome | Error) => void;
}

/** Alarms of the namespaces `a` and `b`, which have one owner, and `platform`, which has none. The test ends the runs. */
async function startAlarms() {
  const storage = await openStorage("sqlite::memory:");
  onTestFinished(() => storage.close());
  await addObjectNamespaces(storage, ["a", "b", "platform"]);
  const running: Running[] = [];
  const gone = new Set(["platform"]);
  const runner = {
    ownerOf: (namespace: string) => (gone.has(namespace) ? undefined : "owner"),
    originOf: () => ({}),
    run: async ({ namespace, id }: ActingObject) => {
      const { promise, resolve, reject } = Promise.withResolvers<AlarmOutcome>();
      const end = (outcome: AlarmOutcome | Error): void =>
        outcome instanceof Error ? reject(outcome) : resolve(outcome);
      running.push({ namespace, id, end });
      return promise;
    },
  };
  const alarms = new Alarms(storage, runner, pino({ level: "silent" }));
  alarms.firstRetryMs = 1;
  const stop = alarms.start();
  let due = Date.now() - 1000;
  const set = async (namespace: string, id: string): Promise<void> =>
    alarms.note({ namespace, id }, { due: due++, instance: 1, number: 1 });
  const ran = (namespace: string): string[] =>
    running.filter((each) => each.namespace === namespace).map(({ id }) => id);
  return { alarms, stop, set, ran, running, gone, rows: async () => loadAlarms(storage) };
}
const done: AlarmOutcome = { outcome: "done", due: null, instance: 1, number: 2 };

it("alarms of one namespace that do not end do not hold back those of another with the same owner", async () => {
  const { set, ran, running, alarms } = await startAlarms();
  const ids = Array.from({ length: runningMax + 8 }, (_, i) => `${i}`);
  await Promise.all(ids.map(async (id) => set("a", id)));
  await expect.poll(() => ran("a")).toEqual(ids.slice(0, namespaceRunningMax));
  await set("b", "x");
  await expect.poll(() => ran("b")).toEqual(["x"]);
  expect(ran("a")).toHaveLength(namespaceRunningMax);
  for (let i = 0; i < running.length; i++) {
    running[i]!.end(done);
    await expect.poll(() => alarms.size).toBe(ids.length - i);
  }
  expect(ran("a")).toEqual(ids);
});

it("a line never runs more than its limits, passes over full namespaces, and lets the others take turns", () => {
  const line = new AlarmLine<{ namespace: string; id: number }>();
  const add = (namespace: string, count: number): void => {
    for (let id = 0; id < count; id++) line.add({ namespace, id });
  };
  add("a", 100);
  add("b", 2);
  const taken = Array.from({ length: namespaceRunningMax + 2 }, () => line.take()!);
  expect(taken.slice(0, 5).map(({ namespace, id }) => `${namespace}${id}`)).toEqual([
    "a0",
    "b0",
    "a1",
    "b1",
    "a2",
  ]);
  expect(line.take()).toBeUndefined();
  for (const namespace of "cdefg") add(namespace, 100);
  for (let all = taken.length; all < runningMax; all++) expect(line.take()!.namespace).not.toBe("a");
  expect(line.take()).toBeUndefined();
  line.end(taken[0]!);
  expect(line.take()!.namespace).toBe("a");
});

it("an alarm that is forgotten while it waits or runs is not tried again, and its row is deleted", async () => {
  const { set, ran, running, alarms, gone, rows, stop } = await startAlarms();
  const ids = Array.from({ length: namespaceRunningMax + 1 }, (_, i) => `${i}`);
  await Promise.all(ids.map(async (id) => set("a", id)));
  await expect.poll(() => ran("a")).toHaveLength(namespaceRunningMax);
  expect(await rows()).toHaveLength(ids.length);
  alarms.forget("a", "0");
  expect(alarms.size).toBe(ids.length - 1);
  gone.add("a");
  alarms.forget("a");
  expect(alarms.size).toBe(0);
  for (const each of running) each.end(new Error("The object is gone."));
  await set("b", "x");
  await expect.poll(() => ran("b")).toEqual(["x"]);
  expect(alarms.size).toBe(1);
  expect(ran("a")).toEqual(ids.slice(0, namespaceRunningMax));
  await stop();
  expect((await rows()).map(({ namespace }) => namespace)).toEqual(["b"]);
});

it("objects of the platform, such as databases, are not asked for alarms", async () => {
  const { alarms, ran, rows, stop } = await startAlarms();
  alarms.ask({ namespace: "platform", id: "database" });
  expect(alarms.size).toBe(0);
  alarms.ask({ namespace: "a", id: "object" });
  await expect.poll(() => ran("a")).toEqual(["object"]);
  await stop();
  expect((await rows()).map(({ namespace }) => namespace)).toEqual(["a"]);
});
