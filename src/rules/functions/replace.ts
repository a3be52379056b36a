import { Fault } from "../values/fault.ts";
import { compileCapturingRegex, type CapturingRegex } from "../regex/regex.ts";
import { PatternError } from "../regex/syntax.ts";
import { captureWildcard, compileWildcard, type WildcardPattern } from "../values/wildcard.ts";
import { ArgumentFault, type FunctionDefinition, type FunctionParameter } from "./definition.ts";

const referencesMax = 8;
const literal: FunctionParameter = { types: ["Bytes"], kind: "Literal" };

/** A replacement, split into strings and numbers of captures. */
type Template = readonly (string | number)[];

function parseTemplate(text: string, index: number): Template {
  const pieces = text.split(/(\$\$|\$\{[1-8]\})/);
  const template = pieces.map((piece, i) =>
    i % 2 === 0 ? piece : piece === "$$" ? "$" : Number(piece.slice(2, -1)),
  );
  const stray = pieces.find((piece, i) => i % 2 === 0 && piece.includes("$"));
  if (stray !== undefined)
    throw new ArgumentFault(index, "expected $$ or ${1} to ${8} after $ in the replacement");
  if (template.filter((piece) => typeof piece === "number").length > referencesMax) {
    throw new ArgumentFault(index, `replacement has more than ${referencesMax} references`);
  }
  return template;
}

function fill(template: Template, groups: readonly (string | undefined)[]): string {
  return template.map((piece) => (typeof piece === "string" ? piece : (groups[piece - 1] ?? ""))).join("");
}

export const replaceFunctions: readonly FunctionDefinition[] = [
  {
    name: "regex_replace",
    parameters: [{ types: ["Bytes"] }, literal, literal],
    returns: "Bytes",
    onceAs: "replace",
    prepare: ([, pattern, replacement]) => {
      let regex: CapturingRegex;
      try {
        regex = compileCapturingRegex(Buffer.from(pattern!.literal as string, "latin1").toString("utf8"));
      } catch (error) {
        if (!(error instanceof PatternError)) throw error;
        throw new ArgumentFault(1, error.message);
      }
      return { regex, template: parseTemplate(replacement!.literal as string, 2) };
    },
    call: ([source], prepared) => {
      const { regex, template } = prepared as { regex: CapturingRegex; template: Template };
      const text = source as string;
      const match = regex.exec(text);
      if (match === undefined) return text;
      return text.slice(0, match.start) + fill(template, match.groups) + text.slice(match.end);
    },
  },
  {
    name: "wildcard_replace",
    parameters: [
      { types: ["Bytes"], kind: "Field" },
      literal,
      literal,
      { ...literal, check: (value) => (value === "s" || value === "" ? undefined : 'flags must be "s"') },
    ],
    optional: 1,
    returns: "Bytes",
    onceAs: "replace",
    prepare: ([, pattern, replacement, flags]) => {
      let wildcard: WildcardPattern;
      try {
        wildcard = compileWildcard(pattern!.literal as string, flags?.literal === "s", { start: 0, end: 0 });
      } catch (error) {
        if (!(error instanceof Fault)) throw error;
        throw new ArgumentFault(1, error.message);
      }
      return { wildcard, template: parseTemplate(replacement!.literal as string, 2) };
    },
    call: ([source], prepared) => {
      const { wildcard, template } = prepared as { wildcard: WildcardPattern; template: Template };
      const captures = captureWildcard(wildcard, source as string);
      return captures === undefined ? source : fill(template, captures);
    },
  },
];
