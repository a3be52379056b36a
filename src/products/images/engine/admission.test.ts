import { expect, it } from "vitest";
import { SingleFlight } from "../results/single-flight.ts";
import { ImageAdmission, QueueFull } from "./admission.ts";

const megabyte = 1024 * 1024;
const admission = (limits: Partial<ConstructorParameters<typeof ImageAdmission>[0]> = {}): ImageAdmission =>
  new ImageAdmission({ slots: 2, memoryBytes: 100 * megabyte, queueMax: 4, ...limits });
const cost = (cpuMs: number, megabytes = 10) => ({ cpuMs, memoryBytes: megabytes * megabyte });
const settled = async (promise: Promise<unknown>): Promise<boolean> => {
  const pending = Symbol("pending");
  const first = await Promise.race([
    promise.catch(() => {}),
    new Promise((resolve) => setImmediate(resolve, pending)),
  ]);
  return first !== pending;
};

it("runs as many jobs as there are slots, cheap jobs first", async () => {
  const gate = admission();
  const ends = [await gate.enter("a", cost(100)), await gate.enter("a", cost(100))];
  const order: string[] = [];
  const expensive = gate.enter("a", cost(60_000)).then((end) => (order.push("expensive"), end));
  const cheap = gate.enter("a", cost(1)).then((end) => (order.push("cheap"), end));
  expect(gate.load).toEqual({ running: 2, waiting: 2 });
  ends[0]!();
  (await cheap)();
  (await expensive)();
  expect(order).toEqual(["cheap", "expensive"]);
  ends[1]!();
  expect(gate.load).toEqual({ running: 0, waiting: 0 });
});

it("admits only jobs that fit in memory, but always one", async () => {
  const gate = admission({ slots: 4 });
  const large = await gate.enter("a", cost(1, 500));
  const next = gate.enter("a", cost(1, 10));
  expect(await settled(next)).toBe(false);
  large();
  const [a, b] = [await next, await gate.enter("a", cost(1, 80))];
  const third = gate.enter("a", cost(1, 20));
  expect(await settled(third)).toBe(false);
  a();
  (await third)();
  b();
});

it("returns a retry delay when the queue is full, and drops jobs whose clients disconnect", async () => {
  const gate = admission({ slots: 1, queueMax: 2 });
  const end = await gate.enter("a", cost(1));
  const leaving = new AbortController();
  const left = gate.enter("a", cost(4000), leaving.signal);
  const stays = gate.enter("a", cost(4000));
  const refused: unknown = await gate.enter("a", cost(1)).catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(QueueFull);
  expect((refused as QueueFull).retryAfterSeconds).toBe(8);
  leaving.abort(new Error("gone"));
  await expect(left).rejects.toThrow("gone");
  expect(gate.load.waiting).toBe(1);
  end();
  (await stays)();
});

it("runs a suspected job alone in the process", async () => {
  const gate = admission();
  const end = await gate.enter("a", cost(1));
  const alone = gate.enter("a", cost(1), undefined, true);
  expect(await settled(alone)).toBe(false);
  end();
  const endAlone = await alone;
  const other = gate.enter("a", cost(1));
  expect(await settled(other)).toBe(false);
  endAlone();
  (await other)();
});

it("gives each account with jobs an equal part of the time", async () => {
  const gate = admission({ slots: 1, queueMax: 100 });
  const order: string[] = [];
  const end = await gate.enter("much", cost(1000));
  const jobs = [...Array<string>(10).fill("much"), "little", "little", "other"].map(async (account) => {
    const done = await gate.enter(account, cost(100));
    order.push(account);
    done();
  });
  end();
  await Promise.all(jobs);
  expect(order.slice(0, 5).toSorted()).toEqual(["little", "little", "much", "much", "other"]);
});

it("counts time that a picture took although its header promised less", async () => {
  const gate = admission({ slots: 1, queueMax: 100 });
  const order: string[] = [];
  const first = await gate.enter("liar", cost(1));
  const underway = performance.now();
  const jobs = ["liar", "liar", "honest", "honest"].map(async (account) => {
    const done = await gate.enter(account, cost(account === "liar" ? 1 : 3));
    order.push(account);
    done();
  });
  await expect.poll(() => performance.now() - underway).toBeGreaterThan(50);
  first();
  await Promise.all(jobs);
  expect(order).toEqual(["honest", "honest", "liar", "liar"]);
});

it("gives an account a place in a queue that another one has filled", async () => {
  const gate = admission({ slots: 1, queueMax: 4 });
  const end = await gate.enter("much", cost(1));
  const ask = async (account: string, ms: number): Promise<string> => {
    try {
      (await gate.enter(account, cost(ms)))();
      return `${account} ${ms}`;
    } catch (error) {
      expect(error).toBeInstanceOf(QueueFull);
      return "refused";
    }
  };
  const asked = [...[1, 2, 3, 4, 5].map((ms) => ["much", ms]), ...[1, 2, 3].map((ms) => ["little", ms])];
  const answers = asked.map(async ([account, ms]) => ask(account as string, ms as number));
  // Each gets two of the four places; the account that was first loses its most expensive jobs.
  expect(gate.load).toEqual({ running: 1, waiting: 4 });
  end();
  expect(await Promise.all(answers)).toEqual([
    "much 1",
    "much 2",
    ...Array<string>(3).fill("refused"),
    "little 1",
    "little 2",
    "refused",
  ]);
  expect(gate.load).toEqual({ running: 0, waiting: 0 });
});

it("runs work once for all callers, and aborts it when the last one leaves", async () => {
  const flights = new SingleFlight<number>();
  let begun = 0;
  let aborted = 0;
  const { promise, resolve } = Promise.withResolvers<number>();
  const work = (signal: AbortSignal): Promise<number> => {
    begun += 1;
    signal.addEventListener("abort", () => (aborted += 1));
    return promise;
  };
  const [first, second] = [new AbortController(), new AbortController()];
  const asked = [flights.run("a", work, first.signal), flights.run("a", work, second.signal)];
  first.abort(new Error("left"));
  await expect(asked[0]).rejects.toThrow("left");
  expect([begun, aborted]).toEqual([1, 0]);
  second.abort(new Error("left too"));
  await expect(asked[1]).rejects.toThrow("left too");
  expect([begun, aborted]).toEqual([1, 1]);
  // After an abort the work starts again, and the end of the first run does not affect the second.
  const again = flights.run("a", work, undefined);
  expect(begun).toBe(2);
  resolve(7);
  expect(await again).toBe(7);
  await expect(flights.run("b", () => Promise.reject(new Error("fails")), undefined)).rejects.toThrow(
    "fails",
  );
  expect(await flights.run("b", async () => 8, undefined)).toBe(8);
});
