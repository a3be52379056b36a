import { parseBounded } from "../../platform/util/bounded-json.ts";
import { show, showList } from "../../platform/util/json.ts";

/** Returns the value of an event's field, as parsed from its JSON; null if the value is unknown. */
export type ValueOf = (field: string) => unknown;
export type EventPredicate = (valueOf: ValueOf) => boolean;

export interface LogFilter {
  matches: EventPredicate;
  /** The fields that the filter reads. */
  fields: ReadonlySet<string>;
}

/** A filter is invalid. The message says why. */
export class FilterFault extends Error {}

/** Limits of a filter. That of comparisons is the public service's. */
const comparisonsMax = 30;
const depthMax = 8;
const lengthMax = 16_384;
const valuesMax = 1000;

type Compare = (found: unknown, wanted: unknown) => boolean;

/** Numbers in filters may be given as text. */
const numberOf = (value: unknown): number =>
  typeof value === "number" ? value : typeof value === "string" && value.trim() !== "" ? Number(value) : NaN;
const isEqual: Compare = (found, wanted) => {
  if (typeof found === "number") return found === numberOf(wanted);
  if (typeof found === "boolean") return found === wanted || String(found) === wanted;
  return typeof found === "string" && found === String(wanted);
};
const ordered =
  (isInOrder: (found: number, wanted: number) => boolean): Compare =>
  (found, wanted) =>
    typeof found === "number" && isInOrder(found, numberOf(wanted));
const textual =
  (holds: (found: string, wanted: string) => boolean): Compare =>
  (found, wanted) =>
    typeof found === "string" && typeof wanted === "string" && holds(found, wanted);
const contains: Compare = (found, wanted) =>
  Array.isArray(found)
    ? found.some((each) => isEqual(each, wanted))
    : typeof found === "string" && found.includes(String(wanted));

/** Whether a value is equal to one of a list, which is read once: events meet lists of a thousand values. */
function isOneOf(list: readonly unknown[]): (found: unknown) => boolean {
  const numbers = new Set(list.map(numberOf));
  numbers.delete(NaN);
  const texts = new Set(list.map(String));
  const flags = new Set(list.filter((each) => typeof each !== "number").map(String));
  return (found) => {
    if (typeof found === "number") return numbers.has(found);
    if (typeof found === "boolean") return flags.has(String(found));
    return typeof found === "string" && texts.has(found);
  };
}

const compared =
  (compare: Compare) =>
  (wanted: unknown) =>
  (found: unknown): boolean =>
    compare(found, wanted);

/** The public operators, as functions of the wanted value. "!" before an operator negates it. */
const operators: Readonly<Record<string, (wanted: unknown) => (found: unknown) => boolean>> = {
  eq: compared(isEqual),
  lt: compared(ordered((found, wanted) => found < wanted)),
  leq: compared(ordered((found, wanted) => found <= wanted)),
  gt: compared(ordered((found, wanted) => found > wanted)),
  geq: compared(ordered((found, wanted) => found >= wanted)),
  startsWith: compared(textual((found, wanted) => found.startsWith(wanted))),
  endsWith: compared(textual((found, wanted) => found.endsWith(wanted))),
  contains: compared(contains),
  in: (wanted) => isOneOf(wanted as unknown[]),
};
const numeric = new Set(["lt", "leq", "gt", "geq"]);
const negatable = new Set(["eq", "startsWith", "endsWith", "contains", "in"]);
export const operatorNames: readonly string[] = Object.keys(operators).flatMap((name) =>
  negatable.has(name) ? [name, `!${name}`] : [name],
);

/**
 * Reads a filter in the public form: `{"where": …}` with a comparison `{"key", "operator", "value"}`, or a group
 * `{"and": […]}` or `{"or": […]}`. Without `knownFields`, any field is allowed. Throws FilterFault.
 */
export function readFilter(text: string, knownFields?: readonly string[]): LogFilter {
  if (text.length > lengthMax) throw new FilterFault(`Expected at most ${lengthMax} characters`);
  let given: unknown;
  try {
    given = parseBounded(text);
  } catch {
    throw new FilterFault("Expected JSON");
  }
  const [where, ...others] = Object.entries(isRecord(given) ? given : {});
  if (where?.[0] !== "where" || others.length > 0) throw new FilterFault('Expected an object {"where": …}');
  const known = knownFields && new Set(knownFields);
  const fields = new Set<string>();
  let comparisons = 0;

  const read = (node: unknown, depth: number): EventPredicate => {
    if (depth > depthMax) throw new FilterFault(`Expected at most ${depthMax} groups within each other`);
    if (!isRecord(node)) throw new FilterFault(`Expected a comparison or a group but received ${show(node)}`);
    if ("and" in node || "or" in node) return readGroup(node, depth);
    comparisons += 1;
    if (comparisons > comparisonsMax) throw new FilterFault(`Expected at most ${comparisonsMax} comparisons`);
    return readComparison(node, known, fields);
  };

  const readGroup = (node: Record<string, unknown>, depth: number): EventPredicate => {
    const [[name, members] = ["", undefined], ...rest] = Object.entries(node);
    if (rest.length > 0 || !Array.isArray(members) || members.length === 0)
      throw new FilterFault(`Expected a group {"and": […]} or {"or": […]} but received ${show(node)}`);
    const each = (members as unknown[]).map((member) => read(member, depth + 1));
    return name === "and"
      ? (valueOf) => each.every((matches) => matches(valueOf))
      : (valueOf) => each.some((matches) => matches(valueOf));
  };

  return { matches: read(where[1], 0), fields };
}

function readComparison(
  node: Record<string, unknown>,
  known: ReadonlySet<string> | undefined,
  fields: Set<string>,
): EventPredicate {
  const { key, operator, value, ...others } = node;
  const [strange] = Object.keys(others);
  if (strange !== undefined)
    throw new FilterFault(`Expected key, operator and value but received ${show(strange)}`);
  if (typeof key !== "string" || known?.has(key) === false)
    throw new FilterFault(`Expected a field of the data set for key but received ${show(key)}`);
  if (typeof operator !== "string" || !operatorNames.includes(operator))
    throw new FilterFault(
      `Expected one of ${showList(operatorNames)} for operator but received ${show(operator)}`,
    );
  const isNot = operator.startsWith("!");
  const name = isNot ? operator.slice(1) : operator;
  checkValue(name, value);
  fields.add(key);
  const holds = operators[name]!(value);
  return isNot ? (valueOf) => !holds(valueOf(key)) : (valueOf) => holds(valueOf(key));
}

function checkValue(operator: string, value: unknown): void {
  if (operator === "in") {
    if (!Array.isArray(value) || value.length === 0 || value.length > valuesMax || !value.every(isScalar))
      throw new FilterFault(`Expected a list of values for in but received ${show(value)}`);
  } else if (numeric.has(operator) ? Number.isNaN(numberOf(value)) : !isScalar(value))
    throw new FilterFault(
      `Expected ${numeric.has(operator) ? "a number" : "a text, a number or a flag"} for ${operator} but received ${show(value)}`,
    );
}

const isScalar = (value: unknown): boolean => ["string", "number", "boolean"].includes(typeof value);
const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
