import { parseArgs } from "node:util";
import { chaos } from "../runtime/chaos.ts";
import { cpuLimitTable } from "../runtime/cpu-limit.ts";

/**
 * Customers that spin, exhaust memory and crash among others that do nothing wrong, while cells are killed; then how exactly
 * `cpuMs` holds, in 200 runs. `node test/proofs/dispatch-chaos.ts --seconds 120 --runs 40`
 */
const { values } = parseArgs({
  options: { seconds: { type: "string", default: "120" }, runs: { type: "string", default: "40" } },
});
const say = (line: string): void => void process.stdout.write(`${line}\n`);

const outcome = await chaos(Number(values.seconds), say);
const { innocent, culprits, cellsKilled } = outcome;
say(`\n${outcome.seconds} s, ${cellsKilled} cells killed from outside\n`);
say("| who | asked | answers |\n| --- | --- | --- |");
for (const [name, { asked, answers }] of Object.entries({ "the others": innocent, ...culprits }))
  say(
    `| ${name} | ${asked} | ${Object.entries(answers)
      .map(([answer, times]) => `${times} × ${answer}`)
      .join(", ")} |`,
  );
say(
  `\nthe others: ${innocent.failed} failed; p50 ${innocent.ms.p50} ms, p99 ${innocent.ms.p99} ms, at most ${innocent.ms.max} ms`,
);

const rows = await cpuLimitTable([10, 20, 50, 100, 200], Number(values.runs));
say(
  "\n| cpuMs | runs | stopped | CPU ms used: least | median | most | outside ±20 % or 5 ms | below it, let through |",
);
say("| --- | --- | --- | --- | --- | --- | --- | --- |");
for (const { limitMs, runs, stopped, usedMs, outside, within } of rows)
  say(
    `| ${limitMs} | ${runs} | ${stopped} | ${usedMs.min} | ${usedMs.p50} | ${usedMs.max} | ${outside} | ${within.passed} of ${within.runs} |`,
  );
const isHeld = innocent.failed === 0 && rows.every(({ runs, stopped }) => runs === stopped);
process.exit(isHeld ? 0 : 1);
