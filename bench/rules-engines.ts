import { setFlagsFromString } from "node:v8";
import { RE2JS } from "re2js";
import { parsePattern } from "../src/rules/regex/parse.ts";
import { compileRegex } from "../src/rules/regex/regex.ts";
import { printPattern } from "../src/rules/regex/print.ts";
import { simplifyForTest } from "../src/rules/regex/simplify.ts";
import { median, printTable } from "./lib/measure.ts";

const rounds = 7;
/** Known to V8 only after the flag is set. */
const linearFlag: string = "l";
const agent =
  "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36";

/** Patterns that are not known to run in linear time on a backtracking engine. */
const patterns = [
  "Windows.*Safari/[0-9.]+$",
  "(?:[A-Z][a-z]+/[0-9.]+ ?)+$",
  "(a|b|ab)*bc$",
  "(?i)mac os x.*version/1[0-9]",
];

/** The candidates for such patterns: our automaton, re2js, and V8's own linear engine, which needs a flag. */
export function compareEngines(): void {
  setFlagsFromString("--enable-experimental-regexp-engine");
  const rows = patterns.map((source) => {
    const pattern = simplifyForTest(parsePattern(source).pattern);
    const printed = printPattern(pattern);
    const re2 = RE2JS.compile(printed);
    const v8 = new RegExp(printed, linearFlag);
    const tests = [
      compileRegex(source).test,
      (text: string) => re2.test(text),
      (text: string) => v8.test(text),
    ];
    const rates = tests.map((): number[] => []);
    for (let round = 0; round < rounds; round++) {
      for (const [i, test] of tests.entries()) rates[i]!.push(rateOf(test));
    }
    return [source, ...rates.map((values) => median(values))];
  });
  printTable(["pattern on a user agent, M/s", "automaton", "re2js", "V8 linear"], rows);
}

function rateOf(test: (text: string) => boolean): number {
  let hits = 0;
  let count = 0;
  let elapsed = 0;
  const start = performance.now();
  do {
    for (let i = 0; i < 500; i++) if (test(agent)) hits++;
    count += 500;
    elapsed = performance.now() - start;
  } while (elapsed < 30);
  if (hits % count !== 0) throw new Error("a pattern gave two answers for one text");
  return count / elapsed / 1000;
}
