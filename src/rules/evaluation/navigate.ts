import type { FieldAccess } from "../syntax/ast.ts";
import type { Value } from "../values/types.ts";

/**
 * Gets a value from nested arrays and maps. With `[*]`, the result is the array of all values found. A
 * missing value then becomes an empty array, except before a single final `[*]`, where it stays missing.
 */
export function navigate(base: Value | undefined, accesses: readonly FieldAccess[]): Value | undefined {
  if (base === undefined) return undefined;
  const firstEach = accesses.findIndex((access) => access.kind === "each");
  if (firstEach === -1) return accesses.reduce(takeOne, base as Value | undefined);
  const value = accesses.slice(0, firstEach).reduce(takeOne, base as Value | undefined);
  const rest = accesses.slice(firstEach);
  if (value === undefined) return rest.length === 1 ? undefined : [];
  const found: Value[] = [];
  collect(value, rest, found);
  return found;
}

function takeOne(value: Value | undefined, access: FieldAccess): Value | undefined {
  if (value === undefined) return undefined;
  if (access.kind === "key") return (value as ReadonlyMap<string, Value>).get(access.key);
  return access.kind === "at" ? (value as readonly Value[])[access.index] : value;
}

function collect(value: Value | undefined, accesses: readonly FieldAccess[], found: Value[]): void {
  if (value === undefined) return;
  const [access, ...rest] = accesses;
  if (access === undefined) {
    found.push(value);
  } else if (access.kind === "each") {
    for (const item of (value as readonly Value[] | ReadonlyMap<string, Value>).values())
      collect(item, rest, found);
  } else {
    collect(takeOne(value, access), rest, found);
  }
}
