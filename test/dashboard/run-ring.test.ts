import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, it } from "vitest";
import { RunRing } from "../../dashboard/screens/logs/run-ring.ts";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

const run = (number: number, more: object = {}): string =>
  JSON.stringify({
    scriptName: "shop",
    outcome: number % 10 === 0 ? "exception" : "ok",
    event: { request: { url: `https://shop.example/${number}`, method: "GET", headers: {} } },
    eventTimestamp: number,
    logs: [],
    exceptions: [],
    ...more,
  });
const everything = { outcome: "", status: "", level: "", text: "" };

it("47: keeps the last 10,000 runs, under their numbers", () => {
  const ring = new RunRing();
  for (let i = 1; i <= 25_000; i++) ring.add(run(i));
  expect(ring.received).toBe(25_000);
  expect(ring.shown.length).toBeGreaterThanOrEqual(10_000);
  expect(ring.shown.length).toBeLessThanOrEqual(11_000);
  expect(ring.shown.at(-1)?.number).toBe(25_000);
  ring.setFilter({ ...everything, outcome: "faults" });
  expect(ring.shown.every(({ number }) => number % 10 === 0)).toBe(true);
  expect(ring.shown.length).toBeGreaterThanOrEqual(1000);
});

it("47: needs no more memory for 100,000 runs than for the first 20,000", () => {
  const ring = new RunRing();
  const logs = [{ level: "log", message: ["a visit of a page", { id: 7 }], timestamp: 0 }];
  const heapAfter = (runs: number): number => {
    while (ring.received < runs) ring.add(run(ring.received + 1, { logs }));
    collect();
    return process.memoryUsage().heapUsed;
  };
  const full = heapAfter(20_000);
  expect(heapAfter(100_000) - full).toBeLessThan(2 * 1024 * 1024);
  expect(ring.shown.length).toBeLessThanOrEqual(11_000);
});

it("keeps fewer runs if they say much", () => {
  const ring = new RunRing();
  const logs = [{ level: "log", message: ["x".repeat(256 * 1024)], timestamp: 0 }];
  for (let i = 1; i <= 500; i++) ring.add(run(i, { logs }));
  expect(ring.shown.length).toBeLessThan(130);
  expect(ring.shown.at(-1)?.number).toBe(500);
});

it("matches by level, status and text, and always shows that runs were missed", () => {
  const ring = new RunRing();
  const logs = (level: string) => [{ level, message: ["order", { id: 7 }], timestamp: 0 }];
  ring.add(run(1, { logs: logs("warn") }));
  ring.add(run(2, { logs: logs("log") }));
  ring.add(run(3, { exceptions: [{ name: "Error", message: "no", timestamp: 0 }] }));
  ring.add(
    JSON.stringify({
      scriptName: null,
      outcome: "ok",
      event: { type: "overload-stop", message: "5 events" },
      eventTimestamp: 0,
      logs: [],
      exceptions: [],
    }),
  );
  const numbers = (filter: object): number[] => {
    ring.setFilter({ ...everything, ...filter });
    return ring.shown.map(({ number }) => number);
  };
  expect(numbers({ level: "warn" })).toEqual([1, 3, 4]);
  expect(numbers({ text: '{"ID":7}' })).toEqual([1, 2, 4]);
  expect(numbers({ status: "5" })).toEqual([4]);
});
