import { expect, test } from "vitest";
import { chaos } from "./chaos.ts";
import { cpuLimitTable } from "./cpu-limit.ts";
import { manyCustomers } from "./many-customers.ts";

/* Short forms of test/proofs/dispatch-*.ts. */

test("customers that spin, hog or crash, and killed cells, do not affect other customers", async () => {
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

test("each of many customers is answered by its own script, and cells stay within their memory", async () => {
  // All of them in one cell would take 400 MiB.
  const outcome = await manyCustomers(160, 400, 256);
  expect(outcome).toMatchObject({ deployed: 160, requests: 400, failed: 0, mixedUp: 0 });
  expect(outcome.cellMebibytesMax).toBeGreaterThan(200);
  expect(outcome.cellMebibytesMax).toBeLessThanOrEqual(256);
});
