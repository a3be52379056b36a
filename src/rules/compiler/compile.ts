import type { Expression } from "../syntax/ast.ts";
import { noLists, type FieldSource, type ListSource } from "../fields/field-source.ts";
import { Generator } from "./generator.ts";
import { Writer } from "./writer.ts";

export type Predicate = (fields: FieldSource) => boolean;

/**
 * Compiles an expression to a JavaScript function, for the hot path. Literals are passed as values: the
 * expression's text never becomes part of the source.
 */
export function compile(expression: Expression, lists: ListSource = noLists): Predicate {
  const writer = new Writer();
  const body = new Generator(writer);
  const rule = writer.function(() => `return ${body.bool(expression.root)};`);
  // V8 can optimize `const` values as known constants, but not parameters.
  const constants = writer.constants.map((_, i) => `const c${i}=constants[${i}];`).join("");
  const source = `"use strict";${constants}${writer.functions.join("")}return ${rule};`;
  // oxlint-disable-next-line typescript/no-implied-eval, no-new-func -- the source contains no text of the expression
  const factory = new Function("lists", "constants", source) as (
    lists: ListSource,
    constants: readonly unknown[],
  ) => Predicate;
  return factory(lists, writer.constants);
}
