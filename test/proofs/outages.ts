import { parseArgs } from "node:util";
import { runOutage } from "../faults/outage-run.ts";
import { outages } from "../faults/outages.ts";

/**
 * PostgreSQL is away for a while, in every way, under two nodes that are written to and visited: they say so within
 * 12 s, and are ready within 2 s of its return, or within 6 s if their connections to the old server neither answer
 * nor end. `node test/proofs/outages.ts --seconds 30 [--only failover]`
 */
const { values } = parseArgs({
  options: { seconds: { type: "string", default: "30" }, only: { type: "string" } },
});
const unreadyMsMax = 12_000;
const readyMsMaxOf = (name: string): number => (name === "silentFailover" ? 6000 : 2000);
const awayMs = Number(values.seconds) * 1000;
let failures = 0;
const seconds = (ms: number): string => (ms / 1000).toFixed(2);
process.stdout.write(
  "| outage | s until 503 | s until ready | s until writes | longest answer s | acknowledged | refused | lost | wrong | visits, failed |\n",
);
for (const [name, outage] of Object.entries(outages)) {
  if (values.only !== undefined && values.only !== name) continue;
  const report = await runOutage(outage, { awayMs });
  const { unreadyMs, readyMs, writingMs, answerMsMax, acknowledged, refused, lost, wrong } = report;
  const times = [unreadyMs, readyMs, writingMs, answerMsMax].map(seconds);
  const counts = [acknowledged, refused, lost.length, wrong.length];
  const isRight =
    unreadyMs <= unreadyMsMax &&
    readyMs <= readyMsMaxOf(name) &&
    lost.length + wrong.length + report.visitsFailed === 0;
  if (!isRight) failures++;
  const row = [name, ...times, ...counts, `${report.visits}, ${report.visitsFailed}`];
  process.stdout.write(`| ${row.join(" | ")} |${isRight ? "" : " FAILED"}\n`);
  for (const each of [...lost, ...wrong].slice(0, 10)) process.stdout.write(`  ${each}\n`);
}
process.exit(failures === 0 ? 0 : 1);
