import { parseArgs } from "node:util";
import { nodesChaos } from "../chaos/run.ts";

/**
 * Two nodes on one PostgreSQL and one S3 store, all of them processes that are killed, stopped and disturbed, while
 * everything is written and read through both nodes. Afterwards both nodes show everything that was acknowledged, and
 * the same. `node test/proofs/nodes.ts --minutes 10 --seed 1`
 */
const { values } = parseArgs({
  options: { minutes: { type: "string", default: "10" }, seed: { type: "string", default: "1" } },
});
const report = await nodesChaos({
  seconds: Number(values.minutes) * 60,
  seed: Number(values.seed),
  pauseMs: 100,
  calmMsMax: 6000,
  writers: 4,
  readers: 4,
  perKind: 2,
  report: (line) => process.stdout.write(`${(performance.now() / 1000).toFixed(0)} s: ${line}\n`),
});
const list = (counts: Record<string, number>): string =>
  Object.entries(counts)
    .map(([name, count]) => `${count} ${name}`)
    .join(", ") || "none";
const failures = {
  "lost after an acknowledgement": report.lost,
  "wrong bytes": report.wrong,
  "too old at a ready node": report.stale,
  "different at the two nodes": report.different,
  "refused without a reason": report.faults,
  "uncaught, or failed ends": report.process,
};
const rows: [string, string | number][] = [
  ["writes", report.sent],
  ["acknowledged", report.acknowledged],
  ["not acknowledged", list(report.causes)],
  ["disturbances", list(report.disturbances)],
  ["reads", `${report.reads}, ${report.unanswered} without an answer`],
  ["oldest state of a ready node", `${report.lagMsMax.toFixed(0)} ms`],
  ["longest not ready", report.longestUnready],
  ["longest from a disturbance's end to ready", `${report.secondsToReady.toFixed(1)} s`],
  ["checks afterwards", report.checked],
  ...Object.entries(failures).map(([name, found]): [string, number] => [name, found.length]),
];
for (const [name, value] of rows) process.stdout.write(`| ${name} | ${value} |\n`);
for (const [name, found] of Object.entries(failures))
  for (const each of found.slice(0, 20)) process.stdout.write(`${name}: ${each}\n`);
if (!report.isClean) process.stdout.write(`logs: ${report.logs}\n`);
process.exit(report.isClean ? 0 : 1);
