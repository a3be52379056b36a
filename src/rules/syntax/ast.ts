import type { FieldDefinition } from "../fields/field-definition.ts";
import type { FunctionDefinition } from "../functions/definition.ts";
import type { IpSet } from "../values/ip-set.ts";
import type { BytesSet, IntSet } from "../values/value-sets.ts";
import type { LinearRegex } from "../regex/regex.ts";
import type { IntValue, IpValue, Type, Value } from "../values/types.ts";
import type { WildcardPattern } from "../values/wildcard.ts";

/** The position of a node in the expression's text, in UTF-16 units. */
export interface SourceRange {
  start: number;
  end: number;
}

export type FieldAccess = { kind: "key"; key: string } | { kind: "at"; index: number } | { kind: "each" };

export interface FieldNode extends SourceRange {
  kind: "field";
  field: FieldDefinition;
  type: Type;
}

export interface CallNode extends SourceRange {
  kind: "call";
  definition: FunctionDefinition;
  args: Argument[];
  /** The type of one call's result. */
  returns: Type;
  /** `Array(returns)` if the first argument is mapped, else `returns`. */
  type: Type;
  /** The result of the definition's `prepare`. */
  prepared: unknown;
}

/** A field or a call, with accesses to its value. */
export interface IndexNode extends SourceRange {
  kind: "index";
  base: FieldNode | CallNode;
  accesses: FieldAccess[];
  /** The number of `[*]`. If there is any, the node is a list of values of its type. */
  eachCount: number;
  type: Type;
}

export interface LiteralNode extends SourceRange {
  kind: "literal";
  type: Type;
  value: Value;
}

export type OrderingName = "eq" | "ne" | "lt" | "le" | "gt" | "ge";

export type Comparison =
  | { op: "true" }
  | { op: OrderingName; of: "Bytes"; value: string }
  | { op: OrderingName; of: "Int"; value: IntValue }
  | { op: OrderingName; of: "Ip"; value: IpValue }
  | { op: "bitwise_and"; value: IntValue }
  | { op: "contains"; value: string }
  | { op: "matches"; regex: LinearRegex }
  | { op: "wildcard"; pattern: WildcardPattern }
  | { op: "in"; set: BytesSet | IntSet | IpSet }
  | { op: "list"; name: string; of: "Bytes" | "Int" | "Ip" };

export interface ComparisonNode extends SourceRange {
  kind: "comparison";
  left: IndexNode;
  operation: Comparison;
  type: Type;
  /** The result of `ne` if the left side is missing. */
  missingNotEqual: boolean;
}

export interface CombiningNode extends SourceRange {
  kind: "combining";
  op: "or" | "xor" | "and";
  items: LogicalNode[];
  type: Type;
}

export interface NotNode extends SourceRange {
  kind: "not";
  operand: LogicalNode;
  type: Type;
}

export interface QuantifierNode extends SourceRange {
  kind: "quantifier";
  op: "any" | "all";
  operand: LogicalNode | IndexNode;
  type: Type;
}

export type LogicalNode = CombiningNode | NotNode | QuantifierNode | ComparisonNode;
export type Argument = LiteralNode | IndexNode | LogicalNode;
export type Node = Argument | FieldNode | CallNode;

/** A checked expression, ready for evaluation. */
export interface Expression {
  text: string;
  root: LogicalNode;
}
