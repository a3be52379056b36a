import { expect, it } from "vitest";
import { runOutage } from "./outage-run.ts";
import { outages } from "./outages.ts";

/**
 * The short form of test/proofs/outages.ts, which asserts the promised times. Here, nodes that wait for the end of a query's
 * time would wait for an hour, and `runOutage` gives up after a minute.
 */
const settings = { awayMs: 1000, databaseTimeoutSeconds: 3600 };

it.each(["restart", "failover"] as const)(
  "two nodes say that PostgreSQL is away, lose nothing, and continue by themselves after a %s",
  async (name) => {
    const report = await runOutage(outages[name], settings);
    expect(report).toMatchObject({ lost: [], wrong: [], visitsFailed: 0 });
    expect(report.refused).toBeGreaterThan(0);
    expect(report.visits).toBeGreaterThan(0);
  },
);

it("nodes leave connections whose server is gone without a word, as soon as another one answers", async () => {
  const report = await runOutage(outages.silentFailover, settings);
  expect(report).toMatchObject({ lost: [], wrong: [], visitsFailed: 0 });
});
