import { RE2JS } from "re2js";
import { isLinearForBacktracking } from "./cost.ts";
import { LazyDfa } from "./dfa.ts";
import { hasSameMatchNatively } from "./native-match.ts";
import { buildNfa } from "./nfa.ts";
import { parsePattern } from "./parse.ts";
import { printPattern } from "./print.ts";
import { requiredBytes } from "./required.ts";
import { simplifyForTest } from "./simplify.ts";
import { checkPatternSize } from "./size.ts";
import type { Pattern } from "./syntax.ts";

/**
 * What runs a pattern. `native` is V8's backtracking engine, for patterns that are shown to need linear time on it;
 * `automaton` is our own deterministic automaton, for all others. Where captures are asked, RE2 stands in for the
 * automaton. V8 also has a linear engine, behind a flag for the whole process; `bench/rules-engines.ts` shows why it
 * is not used: it is about ten times slower than the automaton, and refuses repetitions of more than 16.
 */
export type Engine = "native" | "automaton";

export interface LinearRegex {
  source: string;
  engine: Engine;
  /** What to call `test` on directly, where the engine is native. */
  native?: RegExp;
  /** Whether the pattern matches anywhere in the bytes (a latin1 string). */
  test: (bytes: string) => boolean;
}

/** Compiles a pattern in Rust's syntax. Throws an error whose message is for the author of the expression. */
export function compileRegex(source: string): LinearRegex {
  const { pattern } = parsePattern(source);
  checkPatternSize(pattern);
  const needed = simplifyForTest(pattern);
  if (isLinearForBacktracking(needed)) {
    const native = new RegExp(printPattern(needed));
    return { source, engine: "native", native, test: (bytes) => native.test(bytes) };
  }
  return { source, engine: "automaton", test: automatonTest(needed) };
}

/** The automaton is built at the first use: most rules of a zone never run on one that saving them checks. */
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
  /** The first match: where it is, and its groups from 1; undefined when nothing matches. */
  exec: (bytes: string) => RegexMatch | undefined;
}

export interface RegexMatch {
  start: number;
  end: number;
  groups: readonly (string | undefined)[];
}

/** Compiles a pattern for replacing. The same refusals as {@link compileRegex}. */
export function compileCapturingRegex(source: string): CapturingRegex {
  const { pattern, groupCount } = parsePattern(source);
  checkPatternSize(pattern);
  const printed = printPattern(pattern);
  if (isLinearForBacktracking(pattern) && hasSameMatchNatively(pattern)) {
    const native = new RegExp(printed);
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

function compileRe2(printed: string): RE2JS {
  try {
    return RE2JS.compile(printed);
  } catch (error) {
    throw new Error(`regular expression is too large to replace with: ${(error as Error).message}`, {
      cause: error,
    });
  }
}
