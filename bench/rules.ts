import {
  compile,
  parseExpression,
  requestFields,
  type FieldSource,
  type Predicate,
} from "../src/rules/language.ts";
import { compileRegex } from "../src/rules/regex/regex.ts";
import { redosCases } from "../src/rules/regex/redos-cases.ts";
import { atLeast, atMost, median, pairedRatio, printGoals, printTable } from "./lib/measure.ts";
import { compareEngines } from "./rules-engines.ts";
import { predicatePairs } from "./rules-predicates.ts";
import { benchRequests } from "./rules-requests.ts";

const rounds = 9;
const roundMs = 60;

/** Compares generated rules with hand-written ones. Also: costs of 100 rules per request, a saved rule and the worst regex. */
export default function rules(): Promise<void> {
  const rows = predicatePairs.map((pair) => ({
    name: pair.name,
    ...compareWithHand(pair.expression, pair.byHand),
  }));
  printTable(
    ["rule", "by hand, M/s", "generated, M/s", "ratio"],
    rows.map(({ name, byHand, generated, ratio }) => [name, byHand, generated, ratio]),
  );
  compareEngines();
  const mean = Math.exp(rows.reduce((sum, { ratio }) => sum + Math.log(ratio), 0) / rows.length);
  const worst = worstRegex();
  printGoals([
    atLeast("generated / by hand, geometric mean", mean, 0.8),
    ...rows.map(({ name, ratio }) => atLeast(`generated / by hand: ${name}`, ratio, 0.6)),
    atMost("100 rules, none matching: added to a request, us", addedByHundredRules(), 50),
    atMost("checking and compiling a rule of 1 kB, ms", saveMs(), 1),
    atMost(`worst regex, first run on 8 kB, ms: ${worst.pattern}`, worst.ms, 50),
  ]);
  return Promise.resolve();
}

interface Comparison {
  byHand: number;
  generated: number;
  ratio: number;
}

function compareWithHand(text: string, byHand: Predicate): Comparison {
  const generated = compileText(text);
  const contexts = benchRequests.map((request) => requestFields(request));
  for (const context of contexts) {
    if (byHand(context) !== generated(context)) throw new Error(`the two predicates of ${text} disagree`);
  }
  const loops = { byHand: loopOf(byHand), generated: loopOf(generated) };
  const rates: { byHand: number[]; generated: number[] } = { byHand: [], generated: [] };
  for (let round = 0; round < rounds; round++) {
    // The order alternates between rounds.
    const order = ["byHand", "generated"] as const;
    for (const who of round % 2 === 0 ? order : order.toReversed()) {
      rates[who].push(rateOf(loops[who], contexts));
    }
  }
  return {
    byHand: median(rates.byHand),
    generated: median(rates.generated),
    ratio: pairedRatio(rates.generated, rates.byHand),
  };
}

type Loop = (contexts: readonly FieldSource[]) => number;

/** Gives every predicate a loop of its own, so that its call site stays monomorphic. */
function loopOf(predicate: Predicate): Loop {
  // oxlint-disable-next-line typescript/no-implied-eval, no-new-func -- a constant text
  const make = new Function(
    "predicate",
    "return (contexts) => { let hits = 0; for (const context of contexts) if (predicate(context)) hits++; return hits; }",
  ) as (predicate: Predicate) => Loop;
  return make(predicate);
}

/** Millions of evaluations a second. */
function rateOf(loop: Loop, contexts: readonly FieldSource[]): number {
  let count = 0;
  let elapsed = 0;
  const start = performance.now();
  do {
    for (let i = 0; i < 20; i++) loop(contexts);
    count += 20 * contexts.length;
    elapsed = performance.now() - start;
  } while (elapsed < roundMs);
  return count / elapsed / 1000;
}

/** Microseconds that 100 rules add to a request whose fields have not been read yet. */
function addedByHundredRules(): number {
  const ruleSet = Array.from({ length: 100 }, (_, i) => compileText(unmatchedRule(i)));
  const turns = 20;
  const run = (active: readonly Predicate[]): number => {
    let hits = 0;
    const start = performance.now();
    for (let turn = 0; turn < turns; turn++) {
      for (const request of benchRequests) {
        const fields = requestFields(request);
        for (const rule of active) if (rule(fields)) hits++;
        if (fields["http.request.method"] === "NONE") hits++;
      }
    }
    const us = ((performance.now() - start) * 1000) / (turns * benchRequests.length);
    if (hits > 0) throw new Error("a rule matched that should not");
    return us;
  };
  return median(Array.from({ length: rounds }, () => run(ruleSet) - run([])));
}

function unmatchedRule(i: number): string {
  const templates = [
    `http.host eq "tenant-${i}.example" and starts_with(http.request.uri.path, "/app/${i}/")`,
    `http.request.uri.path matches "^/legacy-${i}/[0-9]+/.*$"`,
    `ip.src in {198.18.${i}.0/24 2001:db8:ffff:${i}::/64} and ssl`,
    `any(lower(http.request.headers["x-team-${i}"][*])[*] contains "blue")`,
    `http.user_agent contains "scanner-${i}" or http.request.uri.query contains "debug=${i}&"`,
    `ip.src.country in {"A${i % 10}" "B${i % 10}"} and not http.request.method in {"GET" "HEAD"}`,
  ];
  return templates[i % templates.length]!;
}

/** Milliseconds to check and compile an expression of about 1000 bytes, new ones each time. */
function saveMs(): number {
  const texts = Array.from({ length: 60 }, (_, i) =>
    Array.from({ length: 13 }, (_, j) => unmatchedRule(i * 13 + j).replace(/\.\d{3,}\./, ".7."))
      .filter((text) => parseExpression(text).ok)
      .join(" or ")
      .slice(0, 4096),
  ).filter((text) => parseExpression(text).ok);
  const times = texts.map((text) => {
    const start = performance.now();
    compileText(text);
    return ((performance.now() - start) * 1000) / text.length;
  });
  return median(times);
}

function worstRegex(): { pattern: string; ms: number } {
  let worst = { pattern: "", ms: 0 };
  for (const { pattern, text } of redosCases) {
    // Compiles a new one each time, because the first run is the slow one. The best of three excludes other load.
    const times = Array.from({ length: 3 }, () => {
      const regex = compileRegex(pattern);
      const start = performance.now();
      regex.test(text);
      return performance.now() - start;
    });
    const ms = Math.min(...times);
    if (ms > worst.ms) worst = { pattern: pattern.length > 30 ? `${pattern.slice(0, 30)}…` : pattern, ms };
  }
  return worst;
}

function compileText(text: string): Predicate {
  const result = parseExpression(text);
  if (!result.ok) throw new Error(result.error.message);
  return compile(result.expression);
}
