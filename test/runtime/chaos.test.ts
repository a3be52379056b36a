import { expect, test } from "vitest";
import { chaos } from "./chaos.ts";
import { cpuLimitTable } from "./cpu-limit.ts";
import { manyCustomers } from "./many-customers.ts";

/* Short forms of test/proofs/dispatch-*.ts. */

test("customers that spin, hog and crash, and cells that are killed, are nobody else's trouble", async () => {
  const failures: string[] = [];
  const { innocent, culprits } = await chaos(8, (line) => failures.push(line));
  expect(failures).toEqual([]);
  expect(innocent.asked).toBeGreaterThan(0);
  for (const name of ["spin", "microtasks", "hog", "buffers", "recursion"])
    expect(Object.keys(culprits[name]!.answers).filter((answer) => answer.startsWith("200"))).toEqual([]);
});

test("a customer over cpuMs is stopped every time", async () => {
  const [row] = await cpuLimitTable([50], 5);
  expect(row).toMatchObject({ runs: 5, stopped: 5 });
  expect(row!.usedMs.p50).toBeGreaterThan(20);
});

test("many customers are called in random order, and each is answered by its own script", async () => {
  const outcome = await manyCustomers(60, 150);
  expect(outcome).toMatchObject({ deployed: 60, requests: 150, failed: 0, mixedUp: 0 });
});
