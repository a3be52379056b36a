import type { Comparison } from "../syntax/ast.ts";
import { bitwiseAnd } from "../evaluation/compare.ts";
import type { IntSet } from "../values/value-sets.ts";
import { spend, uncountedMax } from "../fields/work.ts";
import type { Writer } from "./writer.ts";

const symbols = { eq: "===", ne: "!==", lt: "<", le: "<=", gt: ">", ge: ">=" } as const;
/** Up to this many members are compared one by one. Larger sets use a lookup. */
const inlineMembersMax = 8;

/**
 * Code for whether `value`, which is code for a value that may be missing, satisfies the operation. `present`
 * means that it is a variable and not missing; otherwise the code evaluates it only once.
 */
export function condition(writer: Writer, operation: Comparison, value: string, present: boolean): string {
  const guarded = (test: (name: string) => string): string => {
    if (present) return test(value);
    const name = writer.temporary();
    return `((${name}=${value})!==undefined&&${test(name)})`;
  };
  // Counted inline, because most texts are short.
  const searched = (test: (name: string) => string): string =>
    guarded(
      (name) => `(${name}.length>${uncountedMax}&&${writer.constant(spend)}(f,${name}.length),${test(name)})`,
    );
  switch (operation.op) {
    case "true":
      return present ? value : `(${value}===true)`;
    case "bitwise_and":
      return guarded((name) => bitwiseCode(writer, name, operation.value));
    case "contains":
      return searched((name) => `${name}.includes(${writer.constant(operation.value)})`);
    case "matches":
      return searched(
        (name) => `${writer.constant(operation.regex.native ?? operation.regex)}.test(${name})`,
      );
    case "wildcard":
      return searched((name) => `${writer.constant(operation.pattern)}.test(${name})`);
    case "in":
      if (operation.set.of === "Bytes")
        return membership(writer, [...operation.set.values], operation.set.values, value);
      if (operation.set.of === "Int") return intMembership(writer, operation.set, guarded, value);
      return guarded((name) => `${writer.constant(operation.set)}.has(${name})`);
    case "list":
      return guarded((name) => `lists.has(${writer.constant(operation.name)},${name})`);
    case "eq":
      return `(${value}===${writer.constant(operation.value)})`;
    case "ne":
      return guarded((name) => `${name}!==${writer.constant(operation.value)}`);
    case "lt":
    case "le":
    case "gt":
    case "ge": {
      const code = (name: string): string =>
        `${name}${symbols[operation.op]}${writer.constant(operation.value)}`;
      if (operation.of !== "Ip") return guarded(code);
      // The JavaScript type distinguishes the families: IPv4 is a number, IPv6 a string.
      return guarded((name) => `(typeof ${name}==="${typeof operation.value}"&&${code(name)})`);
    }
  }
}

function bitwiseCode(writer: Writer, name: string, mask: number | bigint): string {
  const exact = `${writer.constant(bitwiseAnd)}(${name},${writer.constant(mask)})`;
  // JavaScript's & uses the low 32 bits of a safe integer.
  if (typeof mask !== "number" || mask < 0 || mask > 0x7fff_ffff) return exact;
  return `(typeof ${name}==="number"?(${name}&${writer.constant(mask)})!==0:${exact})`;
}

/** Code for set membership. Comparisons and lookups are false for a missing value. */
function membership(
  writer: Writer,
  values: readonly unknown[],
  set: ReadonlySet<unknown>,
  value: string,
): string {
  if (values.length === 0) return "false";
  if (values.length === 1) return `(${value}===${writer.constant(values[0])})`;
  if (values.length > inlineMembersMax) return `${writer.constant(set)}.has(${value})`;
  const name = writer.temporary();
  const [first, ...rest] = values.map((member) => writer.constant(member));
  return `((${name}=${value})===${first}||${rest.map((member) => `${name}===${member}`).join("||")})`;
}

function intMembership(
  writer: Writer,
  set: IntSet,
  guarded: (test: (name: string) => string) => string,
  value: string,
): string {
  const { ranges } = set;
  if (ranges.every(({ first, last }) => first === last)) {
    const values = ranges.map(({ first }) => first);
    return membership(writer, values, new Set(values), value);
  }
  if (ranges.length > inlineMembersMax) return guarded((name) => `${writer.constant(set)}.has(${name})`);
  return guarded((name) => {
    const tests = ranges.map(({ first, last }) =>
      first === last
        ? `${name}===${writer.constant(first)}`
        : `(${name}>=${writer.constant(first)}&&${name}<=${writer.constant(last)})`,
    );
    return `(${tests.join("||")})`;
  });
}
