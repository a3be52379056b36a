import { compileCapturingRegex, type CapturingRegex } from "../rules/regex/regex.ts";

/**
 * The patterns of `_headers` and `_redirects`: a path, or `https://host/path`, in which `*` stands for anything (`:splat`),
 * and `:name` for one label of the host or one segment of the path.
 */
export interface PathPattern {
  /** Whether the host takes part. */
  hasHost: boolean;
  /** What stands for the placeholders; undefined where the pattern does not match. */
  match(host: string, path: string): Record<string, string> | undefined;
}

const placeholder = /:([A-Za-z]\w*)/g;
const variable = /\*|:([A-Za-z]\w*)/g;

/**
 * Undefined for a pattern that names the same placeholder twice, or is too large. The expression runs in time linear in the path, because
 * whoever deploys writes patterns that run on a thread which everybody shares.
 */
export function compilePattern(source: string): PathPattern | undefined {
  const hasHost = source.startsWith("https://");
  const pathAt = hasHost ? source.indexOf("/", "https://".length) : 0;
  const names: string[] = [];
  let expression = "^";
  let at = 0;
  for (const found of source.matchAll(variable)) {
    if (found.index < "https://".length && hasHost) continue;
    expression += escape(source.slice(at, found.index));
    expression += found[0] === "*" ? "(.*)" : found.index < pathAt ? "([^/.]+)" : "([^/]+)";
    names.push(found[1] ?? "splat");
    at = found.index + found[0].length;
  }
  expression += `${escape(source.slice(at))}$`;
  if (new Set(names).size < names.length) return undefined;
  let regex: CapturingRegex;
  try {
    regex = compileCapturingRegex(expression);
  } catch {
    return undefined;
  }
  return {
    hasHost,
    match(host, path) {
      const match = regex.exec(hasHost ? `https://${host}${path}` : path);
      return match && Object.fromEntries(names.map((name, i) => [name, match.groups[i] ?? ""]));
    },
  };
}

const escape = (text: string): string => text.replace(/[\\^$+?.()|[\]{}]/g, "\\$&");

/** Writes the values of placeholders into a target or a header's value. */
export const fillPlaceholders = (text: string, values: Readonly<Record<string, string>>): string =>
  text.includes(":") ? text.replace(placeholder, (whole, name: string) => values[name] ?? whole) : text;

export const isPattern = (path: string): boolean =>
  path.includes("*") || /:[A-Za-z]\w*/.test(path.replace(/^https:\/\//, ""));
