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

/** Undefined for a pattern that names the same placeholder twice. */
export function compilePattern(source: string): PathPattern | undefined {
  const hasHost = source.startsWith("https://");
  const hostEnd = hasHost ? source.indexOf("/", "https://".length) : 0;
  const host = source.slice(0, hostEnd < 0 ? source.length : hostEnd);
  const path = source.slice(host.length);
  let pattern: RegExp;
  try {
    pattern = new RegExp(`^${toRegExp(host, "[^/.]+")}${toRegExp(path, "[^/]+")}$`);
  } catch {
    return undefined;
  }
  return {
    hasHost,
    match(requestHost, requestPath) {
      const found = pattern.exec(hasHost ? `https://${requestHost}${requestPath}` : requestPath);
      return found === null ? undefined : { ...found.groups };
    },
  };
}

function toRegExp(text: string, value: string): string {
  return text
    .split("*")
    .map((part) => part.replace(/[-/\\^$+?.()|[\]{}]/g, "\\$&").replace(placeholder, `(?<$1>${value})`))
    .join("(?<splat>.*)");
}

/** Writes the values of placeholders into a target or a header's value. */
export const fillPlaceholders = (text: string, values: Readonly<Record<string, string>>): string =>
  text.includes(":") ? text.replace(placeholder, (whole, name: string) => values[name] ?? whole) : text;

export const isPattern = (path: string): boolean =>
  path.includes("*") || /:[A-Za-z]\w*/.test(path.replace(/^https:\/\//, ""));
