import type { Comparison } from "../syntax/ast.ts";
import type { ListSource } from "../fields/field-source.ts";
import { compareIp } from "../values/ip.ts";
import type { IntValue, IpValue, Value } from "../values/types.ts";

/** Whether a value that is not missing satisfies an operation. The value must have the operation's type. */
export function satisfies(value: Value, operation: Comparison, lists: ListSource): boolean {
  switch (operation.op) {
    case "true":
      return value as boolean;
    case "bitwise_and":
      return bitwiseAnd(value as IntValue, operation.value);
    case "contains":
      return (value as string).includes(operation.value);
    case "matches":
      return operation.regex.test(value as string);
    case "wildcard":
      return operation.pattern.test(value as string);
    case "in":
      return operation.set.has(value as never);
    case "list":
      return lists.has(operation.name, value as string | number);
    case "eq":
    case "ne":
    case "lt":
    case "le":
    case "gt":
    case "ge":
      return order(operation.op, operation.of, value as IntValue | IpValue, operation.value);
  }
}

/** Whether two integers have a common bit that is set (the operator `&`). */
export function bitwiseAnd(a: IntValue, b: IntValue): boolean {
  return (BigInt(a) & BigInt(b)) !== 0n;
}

function order(op: string, of: string, a: IntValue | IpValue, b: IntValue | IpValue): boolean {
  const sign = of === "Ip" ? compareIp(a as IpValue, b as IpValue) : a < b ? -1 : a > b ? 1 : 0;
  switch (op) {
    case "eq":
      return sign === 0;
    case "ne":
      // Addresses of different families are unordered and not equal.
      return sign !== 0;
    case "lt":
      return sign === -1;
    case "le":
      return sign === -1 || sign === 0;
    case "gt":
      return sign === 1;
    default:
      return sign === 1 || sign === 0;
  }
}
