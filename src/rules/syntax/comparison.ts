import type { Comparison, OrderingName } from "./ast.ts";
import { type Cursor } from "./cursor.ts";
import { Fault } from "../values/fault.ts";
import { readIp, readIpRange } from "./ip-literal.ts";
import { IpSet } from "../values/ip-set.ts";
import { readBytes, readInt, readText } from "./literals.ts";
import { readPatternText } from "./regex-literal.ts";
import { compileRegex } from "../regex/regex.ts";
import { PatternError } from "../regex/syntax.ts";
import type { Type } from "../values/types.ts";
import { BytesSet, IntSet } from "../values/value-sets.ts";
import { compileWildcard } from "../values/wildcard.ts";

type OperatorName =
  | OrderingName
  | "in"
  | "bitwise_and"
  | "contains"
  | "matches"
  | "wildcard"
  | "strict wildcard";

/** All operators in the order of matching: the first prefix that matches wins. */
const operators: readonly (readonly [spelling: string, name: OperatorName])[] = [
  ["in", "in"],
  ["eq", "eq"],
  ["==", "eq"],
  ["ne", "ne"],
  ["!=", "ne"],
  ["ge", "ge"],
  [">=", "ge"],
  ["le", "le"],
  ["<=", "le"],
  ["gt", "gt"],
  [">", "gt"],
  ["lt", "lt"],
  ["<", "lt"],
  ["&", "bitwise_and"],
  ["bitwise_and", "bitwise_and"],
  ["contains", "contains"],
  ["~", "matches"],
  ["matches", "matches"],
  ["wildcard", "wildcard"],
  ["strict wildcard", "strict wildcard"],
];

export type ListType = "Bytes" | "Int" | "Ip";
/** The type of a named list; undefined if there is no such list. */
export type ListLookup = (name: string) => ListType | undefined;

export function atOperator(cursor: Cursor, pos: number): boolean {
  return operators.some(([spelling]) => cursor.text.startsWith(spelling, pos));
}

/** Reads an operator and its right side, for a left side of `type`, which must not be Bool. */
export function readOperation(cursor: Cursor, type: Type, lists: ListLookup | undefined): Comparison {
  cursor.skipSpace();
  const start = cursor.pos;
  const operator = operators.find(([spelling]) => cursor.at(spelling));
  if (operator === undefined) throw cursor.faultHere("expected ComparisonOp");
  const [spelling, name] = operator;
  cursor.pos += spelling.length;
  const unsupported = new Fault(`cannot perform this operation on type ${type}`, start, cursor.pos);
  cursor.skipSpace();
  if (type !== "Bytes" && type !== "Int" && type !== "Ip") throw unsupported;
  switch (name) {
    case "in":
      return cursor.at("$") ? readList(cursor, type, lists) : { op: "in", set: readSet(cursor, type) };
    case "bitwise_and":
      if (type !== "Int") throw unsupported;
      return { op: name, value: readInt(cursor) };
    case "contains":
      if (type !== "Bytes") throw unsupported;
      return { op: name, value: readOperand(cursor) };
    case "matches":
      if (type !== "Bytes") throw unsupported;
      return readMatches(cursor);
    case "wildcard":
    case "strict wildcard": {
      if (type !== "Bytes") throw unsupported;
      const patternStart = cursor.pos;
      const source = readText(cursor);
      const span = { start: patternStart, end: cursor.text.length };
      return { op: "wildcard", pattern: compileWildcard(source, name === "strict wildcard", span) };
    }
    case "eq":
    case "ne":
    case "lt":
    case "le":
    case "gt":
    case "ge":
      if (type === "Bytes") return { op: name, of: type, value: readOperand(cursor) };
      if (type === "Int") return { op: name, of: type, value: readInt(cursor) };
      return { op: name, of: type, value: readIp(cursor) };
  }
}

/** Reads a string. If it has no quotes, the fault suggests them. */
function readOperand(cursor: Cursor): string {
  const start = cursor.pos;
  try {
    return readBytes(cursor);
  } catch (error) {
    const meant = unquoted.exec(cursor.text.slice(start, start + unquotedMax));
    if (!(error instanceof Fault) || meant === null || meant[0].length === unquotedMax) throw error;
    throw new Fault(error.message, error.start, error.end, `"${meant[1] ?? meant[0]}"`);
  }
}

/** Text that is not bytes in hexadecimal, but a host name, a path, a word, or in single quotes. */
const unquoted =
  /^'([^'"\\]*)'|^(?=[\da-f:.-]*(?![\da-f])[\p{L}/_*?=%+])[\p{L}\p{N}/_.:*?=%+-]+(?=[\s)}]|$)/iu;
const unquotedMax = 200;

function readMatches(cursor: Cursor): Comparison {
  const pattern = readPatternText(cursor);
  try {
    return { op: "matches", regex: compileRegex(pattern.text) };
  } catch (error) {
    if (!(error instanceof PatternError)) throw error;
    throw new Fault(error.message, pattern.start, pattern.end);
  }
}

function readSet(cursor: Cursor, type: ListType): BytesSet | IntSet | IpSet {
  if (type === "Bytes") return new BytesSet(readElements(cursor, readOperand));
  if (type === "Ip") return new IpSet(readElements(cursor, readIpRange));
  return new IntSet(readElements(cursor, readIntRange));
}

function readElements<T>(cursor: Cursor, read: (cursor: Cursor) => T): T[] {
  cursor.expect("{");
  const elements: T[] = [];
  for (;;) {
    cursor.skipSpace();
    if (cursor.take("}")) return elements;
    elements.push(read(cursor));
  }
}

function readIntRange(cursor: Cursor): { first: number | bigint; last: number | bigint } {
  const start = cursor.pos;
  const first = readInt(cursor);
  const last = cursor.take("..") ? readInt(cursor) : first;
  if (last < first) throw new Fault("incompatible range bounds", start, cursor.pos);
  return { first, last };
}

function readList(cursor: Cursor, type: ListType, lists: ListLookup | undefined): Comparison {
  cursor.expect("$");
  const start = cursor.pos;
  while (/[a-z0-9_.]/.test(cursor.text[cursor.pos] ?? "")) cursor.pos++;
  const name = cursor.text.slice(start, cursor.pos);
  const end = cursor.pos;
  if (name === "" || name.startsWith(".") || name.endsWith(".")) {
    const shown = name === "" ? (cursor.text[start] ?? "") : name;
    throw new Fault(`invalid list name ${JSON.stringify(shown)}`, start, cursor.text.length);
  }
  if (lists !== undefined) {
    const listType = lists(name);
    if (listType === undefined) throw new Fault(`unknown list ${JSON.stringify(name)}`, start - 1, end);
    if (listType !== type) {
      throw new Fault(
        `list ${JSON.stringify(name)} has values of type ${listType}, but got ${type}`,
        start - 1,
        end,
      );
    }
  }
  return { op: "list", name, of: type };
}
