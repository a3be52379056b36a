import type { Expression, Node } from "./ast.ts";
import { noLists, type FieldSource, type ListSource } from "./field-source.ts";
import { formatIp } from "./ip.ts";
import { textOf, type IpValue, type Type, type Value } from "./types.ts";
import { Walker } from "./walk.ts";

/** A part of an expression with what it gave. Every part is evaluated, also where the answer did not need it. */
export interface TraceNode {
  /** The part, as it is written. */
  text: string;
  kind: Node["kind"];
  type: Type;
  /** Undefined is a missing value. */
  value: Value | undefined;
  children: TraceNode[];
}

export interface Trace {
  matched: boolean;
  root: TraceNode;
}

/** Evaluates an expression and keeps the value of every part of it. */
export function trace(expression: Expression, fields: FieldSource, lists: ListSource = noLists): Trace {
  const values = new Map<Node, Value | undefined>();
  const matched = new Walker(fields, lists, (node, value) => values.set(node, value)).run(expression);
  const describe = (node: Node): TraceNode => {
    const isMapped = node.kind === "index" && node.eachCount > 0;
    return {
      text: expression.text.slice(node.start, node.end),
      kind: node.kind,
      type: isMapped ? `Array(${node.type})` : node.type,
      value: values.get(node),
      children: childrenOf(node).map(describe),
    };
  };
  return { matched, root: describe(expression.root) };
}

function childrenOf(node: Node): Node[] {
  switch (node.kind) {
    case "combining":
      return node.items.map(plain);
    case "not":
    case "quantifier":
      return [plain(node.operand)];
    case "comparison":
      return node.operation.op === "true" && plain(node.left).kind === "field" ? [] : [plain(node.left)];
    case "index":
      return [node.base];
    case "call":
      return node.args.filter((arg) => arg.kind !== "literal").map(plain);
    case "field":
    case "literal":
      return [];
  }
}

/** An index that takes nothing out is its field or call. */
function plain(node: Node): Node {
  return node.kind === "index" && node.accesses.length === 0 ? node.base : node;
}

/** A value for people: strings in quotes, addresses as usual, missing values as "missing". */
export function formatValue(value: Value | undefined, type: Type): string {
  if (value === undefined) return "missing";
  if (type === "Bytes") return JSON.stringify(textOf(value as string));
  if (type === "Ip") return formatIp(value as IpValue);
  if (typeof value !== "object") return String(value);
  const inner = (type.startsWith("Map(") ? type.slice(4, -1) : type.slice(6, -1)) as Type;
  if (value instanceof Map) {
    const entries = [...(value as ReadonlyMap<string, Value>)];
    return `{${entries.map(([key, item]) => `${JSON.stringify(textOf(key))}: ${formatValue(item, inner)}`).join(", ")}}`;
  }
  return `[${(value as readonly Value[]).map((item) => formatValue(item, inner)).join(", ")}]`;
}
