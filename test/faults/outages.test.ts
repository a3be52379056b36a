import { expect, it } from "vitest";
import { runOutage } from "./outage-run.ts";
import { outages } from "./outages.ts";

/**
 * The short form of test/proofs/outages.ts, which asserts the promised times. The limits here leave room for a busy
 * machine.
 */
const [unreadyMsMax, readyMsMax] = [12_000, 8000];

it.each(["restart", "failover"] as const)(
  "two nodes say that PostgreSQL is away, lose nothing, and continue by themselves after a %s",
  async (name) => {
    const report = await runOutage(outages[name], { awayMs: 1000 });
    expect(report).toMatchObject({ lost: [], wrong: [], visitsFailed: 0 });
    expect(report.refused).toBeGreaterThan(0);
    expect(report.visits).toBeGreaterThan(0);
    expect(report.unreadyMs).toBeLessThan(unreadyMsMax);
    expect(report.readyMs).toBeLessThan(readyMsMax);
  },
);

it("nodes leave connections whose server is gone without a word, as soon as another one answers", async () => {
  const report = await runOutage(outages.silentFailover, { awayMs: 1000 });
  expect(report).toMatchObject({ lost: [], wrong: [], visitsFailed: 0 });
  // Queries alone would wait for --database-timeout-seconds, which is 30.
  expect(report.readyMs).toBeLessThan(20_000);
});
