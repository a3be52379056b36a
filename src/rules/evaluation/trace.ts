import type { Expression, Node } from "../syntax/ast.ts";
import { noLists, type FieldSource, type ListSource } from "../fields/field-source.ts";
import { formatIp } from "../values/ip.ts";
import { decodeUtf8, type IpValue, type Type, type Value } from "../values/types.ts";
import { Walker } from "./walk.ts";

/** A part of an expression with its value. Every part is evaluated, even if the result does not depend on it. */
export interface TraceNode {
  /** The source text of the part. */
  text: string;
  kind: Node["kind"];
  /** `and`, `or`, `xor`, `not`, `any`, `all`, or the name of a comparison; undefined for fields and calls. */
  operator: string | undefined;
  type: Type;
  /** Undefined if the value is missing. */
  value: Value | undefined;
  /** Whether the result of the whole expression depends on this part. */
  decides: boolean;
  children: TraceNode[];
}

export interface Trace {
  matched: boolean;
  root: TraceNode;
}

/** Evaluates an expression and records the value of every part. */
export function trace(expression: Expression, fields: FieldSource, lists: ListSource = noLists): Trace {
  const values = new Map<Node, Value | undefined>();
  const matched = new Walker(fields, lists, (node, value) => values.set(node, value)).run(expression);
  const describe = (node: Node, decides: boolean): TraceNode => {
    // A field or call that is tested for truth is a part by itself, not two with the same text.
    if (node.kind === "comparison" && node.operation.op === "true")
      return describe(plain(node.left), decides);
    const isMapped = node.kind === "index" && node.eachCount > 0;
    const deciding = decidingChildren(node, values);
    return {
      text: expression.text.slice(node.start, node.end),
      kind: node.kind,
      operator: operatorOf(node),
      type: isMapped ? `Array(${node.type})` : node.type,
      value: values.get(node),
      decides,
      children: childrenOf(node).map((child) => describe(plain(child), decides && deciding(child))),
    };
  };
  return { matched, root: describe(expression.root, true) };
}

function operatorOf(node: Node): string | undefined {
  if (node.kind === "not") return "not";
  if (node.kind === "comparison") return node.operation.op === "list" ? "in" : node.operation.op;
  return node.kind === "combining" || node.kind === "quantifier" ? node.op : undefined;
}

/** Selects the children that decide a node's value: for `and`, the first false child, or else all of them. */
function decidingChildren(
  node: Node,
  values: ReadonlyMap<Node, Value | undefined>,
): (child: Node) => boolean {
  if (node.kind !== "combining" || node.op === "xor") return () => true;
  const stopping = node.op === "or";
  const first = node.items.find((item) => values.get(item) === stopping);
  return (child) => first === undefined || child === first;
}

function childrenOf(node: Node): Node[] {
  switch (node.kind) {
    case "combining":
      return node.items;
    case "not":
    case "quantifier":
      return [node.operand];
    case "comparison":
      return [node.left];
    case "index":
      return [node.base];
    case "call":
      return node.args.filter((arg) => arg.kind !== "literal");
    case "field":
    case "literal":
      return [];
  }
}

/** Replaces an index without accesses by its field or call. */
function plain(node: Node): Node {
  return node.kind === "index" && node.accesses.length === 0 ? node.base : node;
}

/**
 * Formats a value for display: strings in quotes, addresses in their usual form, and "missing". Texts are cut, but not
 * below `max` characters: a value may be large, and is formatted for each part of the expression.
 */
export function formatValue(value: Value | undefined, type: Type, max = Infinity): string {
  if (value === undefined) return "missing";
  if (type === "Bytes") return quoted(value as string, max);
  if (type === "Ip") return formatIp(value as IpValue);
  if (typeof value !== "object") return String(value);
  const inner = (type.startsWith("Map(") ? type.slice(4, -1) : type.slice(6, -1)) as Type;
  const one = (item: Value): string => formatValue(item, inner, max);
  if (!(value instanceof Map)) return `[${joined(value as readonly Value[], one, max)}]`;
  const entries = value as ReadonlyMap<string, Value>;
  return `{${joined(entries, ([key, item]) => `${quoted(key, max)}: ${one(item)}`, max)}}`;
}

const quoted = (text: string, max: number): string =>
  JSON.stringify(decodeUtf8(text.length > max ? text.slice(0, bytesOfCharacter * max) : text));

/** Maximum number of bytes of a UTF-8 character. */
const bytesOfCharacter = 4;

function joined<T>(items: Iterable<T>, one: (item: T) => string, max: number): string {
  let text = "";
  let separator = "";
  for (const item of items) {
    if (text.length > max) break;
    text += separator + one(item);
    separator = ", ";
  }
  return text;
}
