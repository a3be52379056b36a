import assert from "node:assert/strict";
import { startSelvedge } from "../../src/testkit/start-selvedge.ts";
import { hourMs, prepareMonth } from "../testkit/month.ts";

/*
 * `node test/proofs/testkit-month.ts`: 30 days with a schedule every five minutes, deliveries, an alarm and a workflow
 * pass at once. All work runs in order, and each piece sees its own time. test/testkit/time.test.ts has the short form.
 */
const hours = 30 * 24;
const edge = await startSelvedge({ seed: "month", now: "2030-03-01T12:00:30Z", clock: "frozen" });
const month = await prepareMonth(edge, "*/5 * * * *");

const seconds = (fromMs: number): string => `${((performance.now() - fromMs) / 1000).toFixed(1)} s`;
const onceMs = performance.now();
const { work, to, expired } = await edge.clock.advance("30 days");
console.log(`at once: ${work.length} pieces of work in ${seconds(onceMs)}`);
assert.equal(to.getTime(), month.startMs + hours * hourMs);
assert.deepEqual(expired, { kv: 1, tokens: 1 });
await month.check(work, hours * 12);
await edge.close();
console.log("all in order, each at its time");
