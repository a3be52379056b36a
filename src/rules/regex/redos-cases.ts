export interface RedosCase {
  pattern: string;
  text: string;
}

const eights = (unit: string, tail = ""): string => unit.repeat(Math.ceil(8000 / unit.length)) + tail;

/** Patterns that make backtracking engines hang, each with such a text. */
export const redosCases: readonly RedosCase[] = [
  { pattern: "^(a+)+$", text: `${"a".repeat(28)}!` },
  { pattern: "^(a+)+$", text: eights("a", "!") },
  { pattern: "(x+x+)+y", text: eights("x") },
  { pattern: "([a-zA-Z]+)*$", text: eights("a", "!") },
  { pattern: "(a|aa)+$", text: eights("a", "!") },
  { pattern: "(a|a?)+$", text: eights("a", "!") },
  { pattern: "(.*a){12}b", text: eights("a") },
  { pattern: "(.*)(.*)(.*)(.*)(.*)x$", text: eights("a") },
  { pattern: "^(.*?,){11}P", text: eights("1,") },
  { pattern: "(a?){30}a{30}", text: "a".repeat(30) },
  { pattern: "(?:a?){64}a{64}$", text: eights("a", "!") },
  { pattern: "^(\\w{1,20}\\s?){1,50}$", text: `${"a".repeat(30)}!` },
  { pattern: "^(\\w{1,20}\\s?){1,50}$", text: eights("a", "!") },
  {
    pattern:
      "^([a-zA-Z0-9])(([\\-.]|[_]+)?([a-zA-Z0-9]+))*(@){1}[a-z0-9]+[.]{1}(([a-z]{2,3})|([a-z]{2,3}[.]{1}[a-z]{2,3}))$",
    text: eights("a", "!"),
  },
  { pattern: "^[a-z0-9._%+-]{1,64}@(?:[a-z0-9-]{1,63}\\.){1,8}[a-z]{2,24}$", text: `a@${eights("a.", "!")}` },
  { pattern: "\\s+$", text: eights(" ", "x") },
  { pattern: "\\s*#?\\s*$", text: eights(" ", "x") },
  { pattern: "[ab]*a[ab]{12}c", text: eights("abbab") },
  { pattern: "(?:[ab]*a[ab]{40}c|b)$", text: eights("abbabaab") },
  { pattern: "\\b\\w+\\b.*\\b\\d+\\b$", text: eights("ab 12 ", "x") },
  { pattern: "(?m)^(\\s*\\w+\\s*)+:$", text: eights("word ", "!") },
  { pattern: "^(?:(?:[01]?\\d?\\d|2[0-4]\\d|25[0-5])\\.)+$", text: eights("1.", "!") },
  { pattern: "<(?:[^<>]+|<[^<>]*>)*>$", text: `<${eights("a")}` },
  { pattern: "(?i)(?:union\\s+(?:all\\s+)?select.*from.*where)", text: eights("union select from ") },
  { pattern: "((a{0,10}){0,10}){0,10}b$", text: eights("a") },
  { pattern: "(?:.{0,64}a){3}b$", text: eights("ac") },
];
