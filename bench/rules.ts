import {
  compile,
  parseExpression,
  requestFields,
  type FieldSource,
  type Predicate,
} from "../src/rules/index.ts";
import { compileRegex } from "../src/rules/regex/regex.ts";
import { redosCases } from "../src/rules/regex/redos-cases.ts";
import { predicatePairs } from "./rules-predicates.ts";
import { benchRequests } from "./rules-requests.ts";

const rounds = 9;
const roundMs = 60;
const goals = { mean: 0.8, each: 0.6, addedUs: 50, redosMs: 50 };

/** Prints how generated rules compare with hand-written ones, what 100 rules add to a request, and the worst regex. */
export default async function rules(): Promise<void> {
  const ratios = predicatePairs.map(({ expression, byHand }) => compareWithHand(expression, byHand));
  const rows = predicatePairs.map(({ name }, i) => ({ name, ...ratios[i]! }));
  print("rule, generated against hand-written, millions of evaluations a second", [
    ["rule", "by hand", "generated", "ratio", "goal"],
    ...rows.map(({ name, byHand, generated, ratio }) => [
      name,
      byHand.toFixed(1),
      generated.toFixed(1),
      ratio.toFixed(2),
      `>= ${goals.each}`,
    ]),
  ]);
  const mean = Math.exp(rows.reduce((sum, { ratio }) => sum + Math.log(ratio), 0) / rows.length);
  const added = addedByHundredRules();
  const redos = worstRegex();
  print("", [
    ["measure", "value", "goal"],
    ["geometric mean of the ratios", mean.toFixed(2), `>= ${goals.mean}`],
    ["100 rules, none matching: added per request", `${added.toFixed(1)} us`, `<= ${goals.addedUs} us`],
    [`worst regex: ${redos.name}`, `${redos.ms.toFixed(1)} ms`, `< ${goals.redosMs} ms`],
  ]);
  const isMissed =
    mean < goals.mean ||
    rows.some(({ ratio }) => ratio < goals.each) ||
    added > goals.addedUs ||
    redos.ms >= goals.redosMs;
  if (isMissed) process.exitCode = 1;
  await Promise.resolve();
}

function compareWithHand(
  text: string,
  byHand: Predicate,
): { byHand: number; generated: number; ratio: number } {
  const generated = compileText(text);
  const contexts = benchRequests.map((request) => requestFields(request));
  for (const context of contexts) {
    if (byHand(context) !== generated(context)) throw new Error(`the two predicates of ${text} disagree`);
  }
  const rates: [hand: number, generated: number][] = [];
  for (let round = 0; round < rounds; round++) {
    // Whoever goes first in a round goes second in the next.
    if (round % 2 === 0) {
      const hand = rateOf(byHand, contexts);
      rates.push([hand, rateOf(generated, contexts)]);
    } else {
      const rate = rateOf(generated, contexts);
      rates.push([rateOf(byHand, contexts), rate]);
    }
  }
  return {
    byHand: median(rates.map(([hand]) => hand)),
    generated: median(rates.map(([, rate]) => rate)),
    ratio: median(rates.map(([hand, rate]) => rate / hand)),
  };
}

/** Millions of evaluations a second. */
function rateOf(predicate: Predicate, contexts: readonly FieldSource[]): number {
  const loop = loopFor(predicate);
  let count = 0;
  const start = performance.now();
  let elapsed = 0;
  do {
    for (let i = 0; i < 20; i++) loop(contexts);
    count += 20 * contexts.length;
    elapsed = performance.now() - start;
  } while (elapsed < roundMs);
  return count / elapsed / 1000;
}

const loops = new Map<Predicate, (contexts: readonly FieldSource[]) => number>();

/** Every predicate gets a loop of its own, so that none is measured through a call site that others have spoilt. */
function loopFor(predicate: Predicate): (contexts: readonly FieldSource[]) => number {
  const known = loops.get(predicate);
  if (known !== undefined) return known;
  // oxlint-disable-next-line typescript/no-implied-eval, no-new-func -- a constant text
  const make = new Function(
    "predicate",
    "return (contexts) => { let hits = 0; for (const context of contexts) if (predicate(context)) hits++; return hits; }",
  ) as (predicate: Predicate) => (contexts: readonly FieldSource[]) => number;
  const loop = make(predicate);
  loops.set(predicate, loop);
  return loop;
}

/** Microseconds that 100 rules add to a request whose fields nobody has asked for yet. */
function addedByHundredRules(): number {
  const ruleSet = Array.from({ length: 100 }, (_, i) => compileText(unmatchedRule(i)));
  const run = (withRules: boolean): number => {
    let hits = 0;
    const start = performance.now();
    for (let turn = 0; turn < 20; turn++) {
      for (const request of benchRequests) {
        const fields = requestFields(request);
        if (withRules) for (const rule of ruleSet) if (rule(fields)) hits++;
        if (fields["http.request.method"] === "NONE") hits++;
      }
    }
    const us = ((performance.now() - start) * 1000) / (20 * benchRequests.length);
    if (hits > 0) throw new Error("a rule matched that should not");
    return us;
  };
  const differences: number[] = [];
  for (let round = 0; round < rounds; round++) differences.push(-run(false) + run(true));
  return median(differences);
}

function unmatchedRule(i: number): string {
  const rules = [
    `http.host eq "tenant-${i}.example" and starts_with(http.request.uri.path, "/app/${i}/")`,
    `http.request.uri.path matches "^/legacy-${i}/[0-9]+/.*$"`,
    `ip.src in {198.18.${i}.0/24 2001:db8:ffff:${i}::/64} and ssl`,
    `any(lower(http.request.headers["x-team-${i}"][*])[*] contains "blue")`,
    `http.user_agent contains "scanner-${i}" or http.request.uri.query contains "debug=${i}&"`,
    `ip.src.country in {"A${i % 10}" "B${i % 10}"} and not http.request.method in {"GET" "HEAD"}`,
  ];
  return rules[i % rules.length]!;
}

function worstRegex(): { name: string; ms: number } {
  let worst = { name: "", ms: 0 };
  for (const { pattern, text } of redosCases) {
    const regex = compileRegex(pattern);
    const start = performance.now();
    regex.test(text);
    const ms = performance.now() - start;
    if (ms > worst.ms) worst = { name: pattern.length > 40 ? `${pattern.slice(0, 40)}...` : pattern, ms };
  }
  return worst;
}

function compileText(text: string): Predicate {
  const result = parseExpression(text);
  if (!result.ok) throw new Error(result.error.message);
  return compile(result.expression);
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1]!;
}

function print(title: string, rows: readonly (readonly string[])[]): void {
  const widths = rows[0]!.map((_, i) => Math.max(...rows.map((row) => row[i]!.length)));
  if (title !== "") process.stdout.write(`${title}\n`);
  for (const row of rows)
    process.stdout.write(
      `  ${row
        .map((cell, i) => cell.padEnd(widths[i]!))
        .join("  ")
        .trimEnd()}\n`,
    );
  process.stdout.write("\n");
}
