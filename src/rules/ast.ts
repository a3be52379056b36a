import type { FieldDefinition } from "./field-definition.ts";
import type { FunctionDefinition } from "./functions/definition.ts";
import type { IpSet } from "./ip-set.ts";
import type { BytesSet, IntSet } from "./value-sets.ts";
import type { LinearRegex } from "./regex/regex.ts";
import type { IntValue, IpValue, Type, Value } from "./types.ts";
import type { WildcardPattern } from "./wildcard.ts";

/** Where a node stands in the expression text, in UTF-16 units. */
export interface Span {
  start: number;
  end: number;
}

export type Access = { kind: "key"; key: string } | { kind: "at"; index: number } | { kind: "each" };

export interface FieldNode extends Span {
  kind: "field";
  field: FieldDefinition;
  type: Type;
}

export interface CallNode extends Span {
  kind: "call";
  definition: FunctionDefinition;
  args: Argument[];
  /** What one call gives. */
  returns: Type;
  /** `Array(returns)` when the first argument is mapped, else the same as `returns`. */
  type: Type;
  /** Constant arguments made ready once, as the definition wants them. */
  prepared: unknown;
}

/** A field or a call, and what is taken out of its value. */
export interface IndexNode extends Span {
  kind: "index";
  base: FieldNode | CallNode;
  accesses: Access[];
  /** The number of `[*]`; with any, the node stands for a list of values of its type. */
  eachCount: number;
  type: Type;
}

export interface LiteralNode extends Span {
  kind: "literal";
  type: Type;
  value: Value;
}

export type OrderingName = "eq" | "ne" | "lt" | "le" | "gt" | "ge";

export type Operation =
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

export interface ComparisonNode extends Span {
  kind: "comparison";
  left: IndexNode;
  operation: Operation;
  type: Type;
  /** What `ne` gives when the left side is missing. */
  missingNotEqual: boolean;
}

export interface CombiningNode extends Span {
  kind: "combining";
  op: "or" | "xor" | "and";
  items: LogicalNode[];
  type: Type;
}

export interface NotNode extends Span {
  kind: "not";
  operand: LogicalNode;
  type: Type;
}

export interface QuantifierNode extends Span {
  kind: "quantifier";
  op: "any" | "all";
  operand: LogicalNode | IndexNode;
  type: Type;
}

export type LogicalNode = CombiningNode | NotNode | QuantifierNode | ComparisonNode;
export type Argument = LiteralNode | IndexNode | LogicalNode;
export type Node = Argument | FieldNode | CallNode;

/** A checked expression: what the evaluators take. */
export interface Expression {
  text: string;
  root: LogicalNode;
}
