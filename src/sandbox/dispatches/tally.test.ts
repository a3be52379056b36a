import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, it } from "vitest";
import { CellError, CellFault } from "../errors.ts";
import type { CellScript } from "../process/script.ts";
import { DispatchTally } from "./tally.ts";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;
const script = (more: Partial<CellScript>): CellScript =>
  ({ id: "1", owner: "script a/n/busy 7", isDispatched: true, ...more }) as CellScript;

it("counts the runs of customers, and neither trial starts nor other scripts", async () => {
  const tally = new DispatchTally();
  for (const each of [script({}), script({ isTrial: true }), script({ isDispatched: false })]) {
    tally.ran(each);
    tally.failed(each, new CellError("exception", `no stock${"😀".repeat(4000)}`));
    tally.spentAlone(each, 3);
  }
  const counts = await tally.take();
  expect(counts).toMatchObject([["script a/n/busy 7", { requests: 1, faults: 1, cpuMs: 3 }]]);
  const { lastFault } = counts[0]![1];
  expect(lastFault).toMatch(/^no stock/);
  expect(lastFault!.length).toBeLessThanOrEqual(120);
});

it.each([
  [true, 1],
  [false, 0],
])(
  "a death of the cell is a fault of a customer whose run may be the culprit: %s",
  async (mayBeCulprit, faults) => {
    const tally = new DispatchTally();
    const cause = new CellFault("memory", mayBeCulprit);
    tally.ran(script({}));
    tally.failed(script({}), new CellError(mayBeCulprit ? "memory" : "crashed", "It ended.", { cause }));
    expect(await tally.take()).toMatchObject([["script a/n/busy 7", { requests: 1, faults }]]);
  },
);

it.each([
  ["cpu", "The script exceeded its CPU time limit of 40 ms."],
  ["memory", "The script exceeded its memory limit of 128 MB."],
] as const)("names the limit of a run that exceeded it: %s", async (kind, lastFault) => {
  const tally = new DispatchTally();
  const limits = { cpuMs: 40, memoryBytes: 128 * 1024 * 1024 };
  tally.failed(script(limits), new CellError(kind, "It ended.", { cause: new CellFault(kind, true) }));
  expect(await tally.take()).toMatchObject([["script a/n/busy 7", { faults: 1, lastFault }]]);
});

it("has no more of a message in memory than it shows", async () => {
  const tally = new DispatchTally();
  collect();
  const before = process.memoryUsage().heapUsed;
  for (let customer = 0; customer < 2000; customer++) {
    const message = Buffer.alloc(16_000, `${customer} `).toString();
    tally.failed(script({ owner: `script a/n/c ${customer}` }), new CellError("exception", message));
  }
  collect();
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(8 * 1024 * 1024);
  expect(await tally.take()).toHaveLength(2000);
});

it("says whose counts are missing while a cell does not answer", async () => {
  const tally = new DispatchTally();
  const answer = Promise.withResolvers<never>();
  const cell = {
    isDead: false,
    control: { request: async () => answer.promise },
    gateway: { dispatched: new Map() },
  } as unknown as Parameters<DispatchTally["spent"]>[0];
  const run = { script: script({ owner: "script a//d 1", isDispatched: false }), cpuShareMs: 1, token: "t" };
  tally.spent(cell, run, { generation: "1 50" });
  expect(await tally.take(1)).toEqual([]);
  const late = (account: string): number => tally.late((owner) => owner.startsWith(`script ${account}/`));
  expect([late("a"), late("b")]).toEqual([1, 0]);
  answer.reject(new Error("dead"));
  await tally.take(1000);
  expect(late("a")).toBe(0);
});
