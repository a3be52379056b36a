import { uncaughtCounts } from "../../src/platform/util/uncaught.ts";
import { Random } from "../name-server/random.ts";
import { randomSpec, sharpSpecs, type ThrownSpec, wholeSpecs } from "./thrown-values.ts";
import { dates, Throwers, type DateName } from "./throwers.ts";

export interface ThrowsReport {
  throws: number;
  /** Counts of results, by handler. */
  table: Record<string, Record<string, number>>;
  failures: string[];
  uncaught: number;
}

const atOnce = 6;

/**
 * Throws values from every kind of handler at both compatibility dates: the most dangerous ones, or the whole
 * list if `isWhole`, and `count` random ones for each handler and date.
 */
export async function fuzzThrows(count: number, seed: number, isWhole: boolean): Promise<ThrowsReport> {
  const random = new Random(seed);
  const throwers = await Throwers.start();
  const report: ThrowsReport = { throws: 0, table: {}, failures: [], uncaught: 0 };
  const { kinds } = throwers;
  const tasks: { kind: string; date: DateName; spec: ThrownSpec }[] = [];
  for (const date of Object.keys(dates) as DateName[])
    for (const kind of Object.keys(kinds)) {
      for (const spec of isWhole ? [...sharpSpecs, ...wholeSpecs] : sharpSpecs)
        tasks.push({ kind, date, spec });
      for (let i = 0; i < count; i++) tasks.push({ kind, date, spec: randomSpec(random) });
    }
  shuffle(tasks, random);
  const half = Math.floor(tasks.length / 2);
  const run = async (part: typeof tasks): Promise<void> => {
    const work = async (): Promise<void> => {
      for (let task = part.pop(); task !== undefined; task = part.pop()) {
        const { kind, date, spec } = task;
        report.throws++;
        const row = (report.table[kind] ??= {});
        const outcome = await kinds[kind]!(spec, date).catch((error: Error) => `none: ${error.message}`);
        const column = outcome.startsWith("no status") || outcome.startsWith("none") ? "none" : outcome;
        row[column] = (row[column] ?? 0) + 1;
        if (column === "none")
          report.failures.push(`${kind} (${date}): ${outcome}, of ${JSON.stringify(spec).slice(0, 500)}`);
      }
    };
    await Promise.all(Array.from({ length: atOnce }, work));
  };
  try {
    await run(tasks.slice(half));
    await throwers.watch(); // the second half runs with open tails
    await run(tasks.slice(0, half));
    report.uncaught = uncaughtCounts.exception + uncaughtCounts.rejection;
  } finally {
    await throwers.close();
  }
  return report;
}

function shuffle(list: unknown[], random: Random): void {
  for (let i = list.length - 1; i > 0; i--) {
    const j = random.below(i + 1);
    [list[i], list[j]] = [list[j], list[i]];
  }
}
