import type { Expression } from "./ast.ts";
import { noLists, type FieldSource, type ListSource } from "./field-source.ts";
import { Generator } from "./generate/generator.ts";
import { Writer } from "./generate/writer.ts";

export type Predicate = (fields: FieldSource) => boolean;

/**
 * Turns an expression into a JavaScript function, for the hot path. Literals reach it as values: what stands in the
 * expression's text is never part of the source.
 */
export function compile(expression: Expression, lists: ListSource = noLists): Predicate {
  const writer = new Writer();
  const body = new Generator(writer);
  const rule = writer.function(() => `return ${body.bool(expression.root)};`);
  // As `const`, V8 may treat them as known values when it optimizes; parameters it may not.
  const constants = writer.constants.map((_, i) => `const c${i}=constants[${i}];`).join("");
  const source = `"use strict";${constants}${writer.functions.join("")}return ${rule};`;
  // oxlint-disable-next-line typescript/no-implied-eval, no-new-func -- see above: nothing of the text is in it
  const factory = new Function("lists", "constants", source) as (
    lists: ListSource,
    constants: readonly unknown[],
  ) => Predicate;
  return factory(lists, writer.constants);
}
