/** Limits of `_headers` and `_redirects`. */
export const ruleLimits = {
  lineLength: 2000,
  headerRules: 100,
  staticRedirects: 2000,
  dynamicRedirects: 100,
};

/** A line that is ignored, as by the public parser, and reported to the deployer. */
export interface IgnoredLine {
  line: number;
  why: string;
}

export interface RuleLine {
  /** From 1. */
  number: number;
  text: string;
}

/** The lines of a file without comments, empty lines and lines that are too long. */
export function ruleLines(file: string, ignored: IgnoredLine[]): RuleLine[] {
  return file.split("\n").flatMap((raw, index) => {
    const text = raw.trim();
    const number = index + 1;
    if (text === "" || text.startsWith("#")) return [];
    if (text.length <= ruleLimits.lineLength) return [{ number, text }];
    ignored.push({ line: number, why: `it is longer than ${ruleLimits.lineLength} characters` });
    return [];
  });
}

type Location = { url: string } | { why: string };

/** Normalizes a path or an https URL. */
export function readLocation(
  text: string,
  allow: { host: boolean; port: boolean; query: boolean },
): Location {
  const absolute = /^https:\/\/+([^/]+)\/?(.*)/.exec(text);
  if (absolute !== null) {
    const [, host, rest] = absolute;
    if (!allow.host) return { why: `only paths are allowed, not ${text}` };
    if (!allow.port && /:\d+$/.test(host!)) return { why: "a port cannot be given" };
    return { url: `https://${host}${normalPath(`/${rest}`, allow.query)}` };
  }
  const path = text.startsWith("/") || allow.host ? text : `/${text}`;
  if (!path.startsWith("/")) return { why: 'expected a path that begins with "/", or "https://"' };
  return { url: normalPath(path, allow.query) };
}

function normalPath(path: string, withQuery: boolean): string {
  const { pathname, search, hash } = new URL(`http://site${path}`);
  return withQuery ? `${pathname}${search}${hash}` : pathname;
}
