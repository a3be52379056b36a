import { compilePattern } from "./path-pattern.ts";
import { readLocation, ruleLimits, ruleLines, type IgnoredLine } from "./rule-lines.ts";

/** A rule of `_headers`: headers to set and to drop for a path. */
export interface HeaderRule {
  path: string;
  /** Names in lower case; a name that is given twice has both values. */
  set: [name: string, value: string][];
  unset: string[];
}

/** Parses a `_headers` file: a path, followed by lines `Name: value` to set a header or `! Name` to drop one. */
export function parseHeaders(file: string, ignored: IgnoredLine[]): HeaderRule[] {
  const rules: HeaderRule[] = [];
  let current: HeaderRule | undefined;
  let isSkipping = false;
  const ignore = (line: number, why: string): void => {
    ignored.push({ line, why });
  };
  for (const { number, text } of ruleLines(file, ignored)) {
    if (/^(\/|\S+:\/\/)/.test(text)) {
      current = undefined;
      isSkipping = true;
      const path = readPath(text);
      if (typeof path !== "string") ignore(number, path.why);
      else if (rules.length >= ruleLimits.headerRules)
        ignore(number, `there are more than ${ruleLimits.headerRules} rules`);
      else {
        current = { path, set: [], unset: [] };
        rules.push(current);
        isSkipping = false;
      }
      continue;
    }
    if (current === undefined) {
      if (!isSkipping) ignore(number, "a path must come first");
      continue;
    }
    if (text.startsWith("! ")) current.unset.push(text.slice(2).trim().toLowerCase());
    else {
      const header = readHeader(text);
      if (typeof header === "string") ignore(number, header);
      else addHeader(current, ...header);
    }
  }
  return rules.filter(({ set, unset }) => set.length + unset.length > 0);
}

function readPath(text: string): string | { why: string } {
  const location = readLocation(text, { host: true, port: false, query: false });
  if ("why" in location) return location;
  const wildcards = location.url.split("*").length - 1;
  if (wildcards > 1) return { why: "only one * is allowed in a path" };
  if (wildcards === 1 && /:splat(?!\w)/.test(location.url)) return { why: "* is :splat already" };
  if (compilePattern(location.url) === undefined) return { why: "it names a placeholder twice" };
  return location.url;
}

function readHeader(text: string): [name: string, value: string] | string {
  const colon = text.indexOf(":");
  if (colon < 0) return 'expected "Name: value" or "! Name"';
  const name = text.slice(0, colon).trim().toLowerCase();
  const value = text.slice(colon + 1).trim();
  if (!/^[!#$%&'*+.^_`|~0-9a-z-]+$/.test(name)) return `${JSON.stringify(name)} is not a valid header name`;
  if (value === "") return `the header ${name} has no value`;
  // oxlint-disable-next-line no-control-regex
  if (/[\x00-\x08\x0a-\x1f\x7f]|[^\x00-\xff]/.test(value))
    return `the value of ${name} has characters that a header cannot have`;
  return [name, value];
}

function addHeader(rule: HeaderRule, name: string, value: string): void {
  const before = rule.set.find(([known]) => known === name);
  if (before === undefined) rule.set.push([name, value]);
  else before[1] += `, ${value}`;
}
