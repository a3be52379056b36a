import { compilePattern, isPattern } from "./path-pattern.ts";
import { readLocation, ruleLimits, ruleLines, type IgnoredLine } from "./rule-lines.ts";

/** A rule of `_redirects`. The status 200 is a rewrite. `line` counts from 1. */
export interface RedirectRule {
  from: string;
  to: string;
  status: 200 | 301 | 302 | 303 | 307 | 308;
  line: number;
}

const statuses: ReadonlySet<number> = new Set([200, 301, 302, 303, 307, 308]);

/**
 * Parses a `_redirects` file: `from to [status]` on each line. Rules without placeholders before the first
 * rule with placeholders are looked up first. Invalid lines are dropped and reported.
 */
export function parseRedirects(
  file: string,
  htmlHandling: string,
  ignored: IgnoredLine[],
): { fixed: RedirectRule[]; patterns: RedirectRule[] } {
  const [fixed, patterns]: [RedirectRule[], RedirectRule[]] = [[], []];
  const seen = new Set<string>();
  for (const { number: line, text } of ruleLines(file, ignored)) {
    const tokens = text.split(/\s#/, 1)[0]!.trim().split(/\s+/);
    const rule = readRule(tokens, line, htmlHandling);
    if (typeof rule === "string") ignored.push({ line, why: rule });
    else if (seen.has(rule.from)) ignored.push({ line, why: `there is a rule for ${rule.from} before it` });
    else {
      const isFixed = patterns.length === 0 && !isPattern(rule.from);
      const [list, max] = isFixed
        ? [fixed, ruleLimits.staticRedirects]
        : [patterns, ruleLimits.dynamicRedirects];
      if (list.length >= max) {
        ignored.push({ line, why: `there are more than ${max} rules of its kind` });
        continue;
      }
      seen.add(rule.from);
      list.push(rule);
    }
  }
  return { fixed, patterns };
}

function readRule(tokens: string[], line: number, htmlHandling: string): RedirectRule | string {
  const [fromText, toText, statusText = "302"] = tokens;
  if (fromText === undefined || toText === undefined || tokens.length > 3)
    return `expected "from to [status]" but received ${tokens.length} words`;
  const from = readLocation(fromText, { host: false, port: false, query: false });
  if ("why" in from) return from.why;
  if (compilePattern(from.url) === undefined) return "it names a placeholder twice";
  const to = readLocation(toText, { host: true, port: true, query: true });
  if ("why" in to) return to.why;
  const status = Number(statusText);
  if (!statuses.has(status))
    return `expected one of the statuses ${[...statuses].join(", ")}, not ${statusText}`;
  const isRelative = to.url.startsWith("/");
  if (!isRelative && !isPattern(to.url) && !URL.canParse(to.url)) return `${toText} is not a valid URL`;
  if (status === 200 && !isRelative) return "a rewrite (200) can only point to a path of the same site";
  // Stripping ".html" or "/index" would lead to the same rule again.
  const endsInIndex = /\/index(\.html)?$/.test(to.url);
  const loops =
    isRelative &&
    endsInIndex &&
    (from.url.endsWith("/*") || (from.url.endsWith("/") && htmlHandling !== "none"));
  if (loops) return "it would redirect to itself endlessly";
  return { from: from.url, to: to.url, status: status as RedirectRule["status"], line };
}
