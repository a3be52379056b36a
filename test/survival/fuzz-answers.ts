import { Random } from "../name-server/random.ts";
import {
  Answers,
  type HostileAnswer,
  randomAnswer,
  sources,
  systematicAnswers,
  visitors,
  type Seen,
  type Source,
  type VisitorVersion,
} from "./answers.ts";
import type { Target } from "./target.ts";

export interface AnswersReport {
  visits: number;
  /** Counts of status classes, by source and kind of visitor. */
  table: Record<string, Record<string, number>>;
  /** Visitors without a status, with their requests. */
  failures: string[];
  uncaught: number;
}

const atOnce = 8;

/** Leaves out responses that are only long. */
const shown = (answer: HostileAnswer): string => JSON.stringify(answer).replaceAll(/(x|b){9,}/g, "$1…");

export interface Systematic {
  sources: readonly Source[];
  visitors: readonly VisitorVersion[];
}

/**
 * Sends the systematic responses from the given sources to the given visitors, and `count` random ones from
 * every source to every HTTP version.
 */
export async function fuzzAnswers(
  target: Target,
  count: number,
  seed: number,
  systematic: Systematic = { sources, visitors },
): Promise<AnswersReport> {
  const random = new Random(seed);
  const answers = await Answers.start(target);
  const report: AnswersReport = { visits: 0, table: {}, failures: [], uncaught: 0 };
  const note = (source: string, visitor: string, seen: Seen, what: string): void => {
    report.visits++;
    const row = (report.table[`${source}, ${visitor}`] ??= {});
    const column =
      typeof seen === "number" ? (seen > 599 ? String(seen) : `${Math.floor(seen / 100)}xx`) : "none";
    row[column] = (row[column] ?? 0) + 1;
    if (typeof seen !== "number") report.failures.push(`${source}, ${visitor}: ${seen}, of ${what}`);
  };
  try {
    const tasks = [
      ...systematicAnswers.map((answer) => ({ answer, from: systematic.sources, to: systematic.visitors })),
      ...Array.from({ length: count }, () => ({ answer: randomAnswer(random), from: sources, to: visitors })),
    ];
    const work = async (): Promise<void> => {
      for (let task = tasks.pop(); task !== undefined; task = tasks.pop())
        for (const source of task.from)
          for (const visitor of task.to)
            note(source, visitor, await answers.visit(task.answer, source, visitor), shown(task.answer));
    };
    await Promise.all(Array.from({ length: atOnce }, work));
    report.uncaught = await target.uncaught();
  } finally {
    answers.close();
  }
  return report;
}
