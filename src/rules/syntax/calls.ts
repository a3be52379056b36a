import type { CallNode, CombiningNode } from "./ast.ts";
import type { FieldSource } from "../fields/field-source.ts";
import type { Value } from "../values/types.ts";
import { spend, workOf } from "../fields/work.ts";

/**
 * Calls a function once. A missing argument makes the result missing, unless the function accepts missing
 * values. Throws TooMuchWork.
 */
export function callOnce(
  node: CallNode,
  args: readonly (Value | undefined)[],
  fields: FieldSource,
): Value | undefined {
  const { definition, prepared } = node;
  if (definition.acceptsMissing !== true && args.includes(undefined)) return undefined;
  spend(fields, workOf(args) + (definition.moreWork?.(args) ?? 0));
  return definition.call(args, prepared);
}

/** Calls a function for each value of a mapped first argument, and omits missing results. */
export function mapCall(
  node: CallNode,
  first: Value | undefined,
  rest: readonly (Value | undefined)[],
  fields: FieldSource,
): readonly Value[] | undefined {
  if (first === undefined) return undefined;
  return (first as readonly Value[])
    .map((item) => callOnce(node, [item, ...rest], fields))
    .filter((result) => result !== undefined);
}

/** Combines two values with `and`, `or` or `xor`. */
export function combine(op: CombiningNode["op"], left: boolean, right: boolean): boolean {
  return op === "and" ? left && right : op === "or" ? left || right : left !== right;
}

/** Combines arrays element by element, up to the shortest length. */
export function combineArrays(
  op: CombiningNode["op"],
  arrays: readonly (readonly boolean[])[],
): readonly boolean[] {
  return arrays.reduce((left, right) =>
    left.slice(0, right.length).map((item, i) => combine(op, item, right[i]!)),
  );
}
