import type { Expression } from "../syntax/ast.ts";
import { noLists, type FieldSource, type ListSource } from "../fields/field-source.ts";
import { Walker } from "./walk.ts";

/** Evaluates an expression by walking its tree. Tests compare compiled expressions with this reference. */
export function evaluate(expression: Expression, fields: FieldSource, lists: ListSource = noLists): boolean {
  return new Walker(fields, lists).run(expression);
}
