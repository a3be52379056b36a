import type { Expression } from "./ast.ts";
import { noLists, type FieldSource, type ListSource } from "./field-source.ts";
import { Walker } from "./walk.ts";

/** Evaluates an expression by walking its tree: the reference that compiled expressions are compared with. */
export function evaluate(expression: Expression, fields: FieldSource, lists: ListSource = noLists): boolean {
  return new Walker(fields, lists).run(expression);
}
