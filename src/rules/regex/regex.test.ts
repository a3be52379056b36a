import { fc } from "../../../test/helpers/properties.ts";
import { RE2JS } from "re2js";
import { describe, expect, it } from "vitest";
import { LazyDfa } from "./automaton/dfa.ts";
import { buildNfa } from "./automaton/nfa.ts";
import { parsePattern } from "./parse.ts";
import { printPattern } from "./print.ts";
import { redosCases } from "./redos-cases.ts";
import { compileCapturingRegex, compileRegex, type RegexEngine } from "./regex.ts";

describe("engines", () => {
  it.each<[pattern: string, engine: RegexEngine]>([
    ["^/api/v[0-9]+/users/[0-9]+$", "native"],
    ["\\.(?:php|asp|jsp)$", "native"],
    ["(?i)(bot|crawl|spider)", "native"],
    ["^/blog/.*", "native"],
    ["^.*\\.example\\.com$", "native"],
    ["^(?:/[a-z0-9-]+)+$", "native"],
    ["^a.*b.*c", "automaton"],
    ["^(a+)+$", "automaton"],
    ["^(a|aa)+$", "automaton"],
    ["foo.*bar", "automaton"],
    ["(?m)^a$", "automaton"],
    ["(a?){30}a{30}", "automaton"],
  ])("runs %s on the %s engine", (pattern, engine) => {
    expect(compileRegex(pattern).engine).toBe(engine);
  });

  it.each(redosCases)("terminates on $pattern", ({ pattern, text }) => {
    const expected = RE2JS.compile(printPattern(parsePattern(pattern).pattern)).test(text);
    expect(compileRegex(pattern).test(text)).toBe(expected);
  });
});

const atom = fc.constantFrom(
  ...[
    "a",
    "b",
    "c",
    ".",
    "\\w",
    "\\d",
    "\\s",
    "\\W",
    "[ab]",
    "[^a]",
    "[a-c]",
    "\\b",
    "\\B",
    "^",
    "$",
    "\\x61",
    "\\n",
  ],
  ...["(?i:A)", "(?s:.)", "(?m:^)", "(?m:$)", "[[:alpha:]]", "\\xff", "(?:)"],
);
const pattern = fc.letrec<{ pattern: string; item: string }>((tie) => ({
  item: fc.oneof(
    { maxDepth: 3, depthIdentifier: "pattern" },
    atom,
    tie("pattern").map((inner) => `(?:${inner})`),
    tie("pattern").map((inner) => `(${inner})`),
    fc
      .tuple(tie("pattern"), fc.constantFrom("*", "+", "?", "*?", "+?", "{2}", "{0,2}", "{1,3}?", "{2,}"))
      .map(([inner, times]) => `(?:${inner})${times}`),
  ),
  pattern: fc
    .array(
      fc.array(tie("item"), { maxLength: 4 }).map((items) => items.join("")),
      { minLength: 1, maxLength: 3 },
    )
    .map((branches) => branches.join("|")),
})).pattern;
const text = fc
  .array(fc.constantFrom("a", "b", "c", "A", "1", " ", "\n", "\u00ff", "_"), { maxLength: 14 })
  .map((chars) => chars.join(""));

describe("matching", () => {
  it("agrees with RE2, on the chosen engine and on the automaton", () => {
    fc.assert(
      fc.property(pattern, fc.array(text, { minLength: 4, maxLength: 8 }), (source, texts) => {
        const parsed = parsePattern(source).pattern;
        const re2 = RE2JS.compile(printPattern(parsed));
        const chosen = compileRegex(source);
        const dfa = new LazyDfa(buildNfa(parsed));
        for (const sample of texts) {
          const expected = re2.test(sample);
          expect(dfa.test(sample), `automaton on ${JSON.stringify(sample)}`).toBe(expected);
          expect(chosen.test(sample), `${chosen.engine} on ${JSON.stringify(sample)}`).toBe(expected);
        }
      }),
      { numRuns: 1200 },
    );
  });

  it("finds the match and the groups that RE2 finds", () => {
    fc.assert(
      fc.property(pattern, text, (source, sample) => {
        const regex = compileCapturingRegex(source);
        const matcher = RE2JS.compile(printPattern(parsePattern(source).pattern)).matcher(sample);
        const groups = (): (string | undefined)[] =>
          Array.from({ length: matcher.groupCount() }, (_, i) => matcher.group(i + 1) ?? undefined);
        const found = matcher.find()
          ? { start: matcher.start(), end: matcher.end(), groups: groups() }
          : undefined;
        expect(regex.exec(sample)).toEqual(found);
      }),
      { numRuns: 800 },
    );
  });

  it.each([
    ["(?:|\\d){0,2}", "1", 0, []],
    ["(?:|a)?b", "ab", 2, []],
    ["(?:(a)|b){2}", "ab", 2, ["a"]],
    ["(?:(a)|(b)){1,3}c", "abc", 3, ["a", "b"]],
  ])(
    "prefers the first alternative in %s, and keeps the groups of every iteration",
    (source, sample, end, groups) => {
      expect(compileCapturingRegex(source).exec(sample)).toEqual({ start: 0, end, groups });
    },
  );

  it("clears its table instead of growing without bound", () => {
    const dfa = new LazyDfa(buildNfa(parsePattern("[ab]*a[ab]{16}c").pattern));
    let seed = 1;
    const bits = Array.from({ length: 50_000 }, () =>
      (seed = (seed * 48_271) % 0x7fff_ffff) & 64 ? "a" : "b",
    ).join("");
    expect(dfa.test(bits)).toBe(false);
    expect(dfa.test(`${bits}${"a".repeat(17)}c`)).toBe(true);
  });

  it("expands Unicode classes to UTF-8", () => {
    const bytes = (chars: string): string => Buffer.from(chars, "utf8").toString("latin1");
    const hangul = compileRegex("^(?u)\\p{Hangul}+$");
    expect(hangul.test(bytes("한국"))).toBe(true);
    expect(hangul.test(bytes("한a"))).toBe(false);
    expect(compileRegex("^(?u).$").test(bytes("😀"))).toBe(true);
    expect(compileRegex("^.$").test(bytes("😀"))).toBe(false);
    expect(compileRegex("^(?u)[^a]$").test(bytes("é"))).toBe(true);
    expect(compileRegex("^(?u)[α-ω]+$").test(bytes("λόγος"))).toBe(false);
    expect(compileRegex("^(?u)[α-ω]+$").test(bytes("λαμδα"))).toBe(true);
    expect(compileRegex("^(?iu)ΛΑΜΔΑ$").test(bytes("λαμδα"))).toBe(true);
  });
});
