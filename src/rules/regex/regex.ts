import { RE2JS } from "re2js";
import { isLinearForBacktracking } from "./cost.ts";
import { LazyDfa } from "./automaton/dfa.ts";
import { hasSameMatchNatively } from "./automaton/native-match.ts";
import { buildNfa } from "./automaton/nfa.ts";
import { parsePattern } from "./parse.ts";
import { printPattern } from "./print.ts";
import { requiredBytes } from "./automaton/required.ts";
import { simplifyForTest } from "./simplify.ts";
import { checkPatternSize } from "./size.ts";
import { PatternError, type Pattern } from "./syntax.ts";

/**
 * The engine for a pattern. `native` is V8's backtracking engine, for patterns that provably need linear time
 * on it. `automaton` is our deterministic automaton, for all others. For captures, RE2 replaces the
 * automaton. V8 also has a linear engine, behind a flag for the whole process. It is about ten times slower
 * than the automaton and rejects repetitions of more than 16 (see `bench/rules-engines.ts`).
 */
export type RegexEngine = "native" | "automaton";

export interface LinearRegex {
  source: string;
  engine: RegexEngine;
  /** The RegExp itself, if the engine is native, for direct calls of `test`. */
  native?: RegExp;
  /** Whether the pattern matches anywhere in the bytes (a latin1 string). */
  test: (bytes: string) => boolean;
}

/**
 * Compiles a pattern in Rust's syntax. Throws `PatternError`, whose message is for the author of the
 * expression.
 */
export function compileRegex(source: string): LinearRegex {
  const { pattern } = parsePattern(source);
  checkPatternSize(pattern);
  const needed = simplifyForTest(pattern);
  if (isLinearForBacktracking(needed)) {
    const native = compileNative(printPattern(needed));
    return { source, engine: "native", native, test: (bytes) => native.test(bytes) };
  }
  return { source, engine: "automaton", test: automatonTest(needed) };
}

/** Builds the automaton at the first use, because validating a rule does not run it. */
function automatonTest(pattern: Pattern): (bytes: string) => boolean {
  const required = requiredBytes(pattern);
  let dfa: LazyDfa | undefined;
  return (bytes) => {
    if (!bytes.includes(required)) return false;
    dfa ??= new LazyDfa(buildNfa(pattern));
    return dfa.test(bytes);
  };
}

export interface CapturingRegex {
  source: string;
  /** The first match with its position and groups from 1; undefined if nothing matches. */
  exec: (bytes: string) => RegexMatch | undefined;
}

export interface RegexMatch {
  start: number;
  end: number;
  groups: readonly (string | undefined)[];
}

/** Compiles a pattern for replacement. Throws for the same patterns as {@link compileRegex}. */
export function compileCapturingRegex(source: string): CapturingRegex {
  const { pattern, groupCount } = parsePattern(source);
  checkPatternSize(pattern);
  const printed = printPattern(pattern);
  if (isLinearForBacktracking(pattern) && hasSameMatchNatively(pattern)) {
    const native = compileNative(printed);
    return {
      source,
      exec: (bytes) => {
        const match = native.exec(bytes);
        if (match === null) return undefined;
        return { start: match.index, end: match.index + match[0].length, groups: match.slice(1) };
      },
    };
  }
  const re2 = compileRe2(printed);
  return {
    source,
    exec: (bytes) => {
      const matcher = re2.matcher(bytes);
      if (!matcher.find()) return undefined;
      const groups = Array.from({ length: groupCount }, (_, i) => matcher.group(i + 1) ?? undefined);
      return { start: matcher.start(), end: matcher.end(), groups };
    },
  };
}

function compileNative(printed: string): RegExp {
  try {
    return new RegExp(printed);
  } catch (error) {
    throw new PatternError("regular expression cannot be compiled", { cause: error });
  }
}

function compileRe2(printed: string): RE2JS {
  try {
    return RE2JS.compile(printed);
  } catch (error) {
    throw new PatternError("regular expression is too large to replace with", { cause: error });
  }
}
