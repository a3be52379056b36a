import type { z } from "zod";

/** Issues of Zod in one value that are enough to refuse it. */
export const issuesMax = 10;
/** Values of JSON from which on Zod does not see a part of a body whole. */
const largeValues = 256;

/** The definitions of Zod that contain others, as far as bodies use them. */
interface Definition {
  type: string;
  shape?: Record<string, z.ZodType>;
  catchall?: z.ZodType;
  element?: z.ZodType;
  keyType?: z.ZodType;
  valueType?: z.ZodType;
  options?: readonly z.ZodType[];
  innerType?: z.ZodType;
  in?: z.ZodType;
  checks?: readonly { _zod: { def: { check: string; maximum?: number } } }[];
}

type Issue = z.core.$ZodIssue;

/**
 * The first issues of a large value. Zod collects all of them, which takes far more time and memory than the value: a
 * list of 100,000 wrong items stalls the process for a second. So lists, records and objects are checked part by part,
 * until there are enough issues. An empty answer proves nothing: Zod must still check the value.
 */
export function firstIssues(schema: z.ZodType, value: unknown): Issue[] {
  return isLarge(value) ? ofLarge(schema, value).slice(0, issuesMax) : [];
}

const issuesOf = (schema: z.ZodType, value: unknown): Issue[] =>
  isLarge(value) ? ofLarge(schema, value) : (schema.safeParse(value).error?.issues ?? []);

function ofLarge(schema: z.ZodType, value: unknown): Issue[] {
  const of = schema.def as unknown as Definition;
  if (of.innerType !== undefined) return ofLarge(of.innerType, value);
  if (of.in !== undefined) return ofLarge(of.in, value);
  if (of.options !== undefined) return ofUnion(of.options, value);
  const isList = Array.isArray(value);
  if (of.element !== undefined && isList) return ofList(of, of.element, value);
  if (isList || typeof value !== "object" || value === null) return ofOtherType(schema, value);
  const fields = value as Record<string, unknown>;
  if (of.shape !== undefined) return ofObject(of.shape, of.catchall?.def.type === "never", fields);
  if (of.keyType !== undefined && of.valueType !== undefined)
    return ofRecord(of.keyType, of.valueType, fields);
  return ofOtherType(schema, value);
}

/** Schemas that look at the type of a value only, or at a text, which is not longer than the body. */
const plainTypes = new Set(
  "string number boolean null undefined never literal enum array object record".split(" "),
);

const ofOtherType = (schema: z.ZodType, value: unknown): Issue[] =>
  plainTypes.has(schema.def.type) ? (schema.safeParse(value).error?.issues ?? []) : [];

function ofUnion(options: readonly z.ZodType[], value: unknown): Issue[] {
  const errors: Issue[][] = [];
  for (const option of options) {
    const issues = ofLarge(option, value);
    if (issues.length === 0) return [];
    errors.push(issues.slice(0, issuesMax));
  }
  return [{ code: "invalid_union", errors, path: [], message: "Invalid input", inclusive: true }];
}

function ofList(list: Definition, element: z.ZodType, items: readonly unknown[]): Issue[] {
  const maximum = list.checks
    ?.map((each) => each._zod.def)
    .find(({ check }) => check === "max_length")?.maximum;
  if (maximum !== undefined && items.length > maximum)
    return [{ code: "too_big", origin: "array", maximum, inclusive: true, path: [], message: "Too big" }];
  const issues: Issue[] = [];
  for (let at = 0; at < items.length && issues.length < issuesMax; at++)
    addAt(issues, at, issuesOf(element, items[at]));
  return issues;
}

function ofRecord(keyType: z.ZodType, valueType: z.ZodType, fields: Record<string, unknown>): Issue[] {
  const issues: Issue[] = [];
  for (const [key, value] of Object.entries(fields)) {
    if (issues.length >= issuesMax) break;
    const ofKey = keyType.def.type === "string" ? keyType.safeParse(key).error?.issues : undefined;
    if (ofKey === undefined) addAt(issues, key, issuesOf(valueType, value));
    else
      issues.push({
        code: "invalid_key",
        origin: "record",
        issues: ofKey,
        path: [key],
        message: "Invalid key",
      });
  }
  return issues;
}

function ofObject(
  shape: Record<string, z.ZodType>,
  isStrict: boolean,
  fields: Record<string, unknown>,
): Issue[] {
  const issues: Issue[] = [];
  for (const [key, field] of Object.entries(shape))
    addAt(issues, key, issuesOf(field, Object.hasOwn(fields, key) ? fields[key] : undefined));
  if (!isStrict) return issues;
  const unknown: string[] = [];
  for (const key of Object.keys(fields)) {
    if (!Object.hasOwn(shape, key)) unknown.push(key);
    if (unknown.length === issuesMax) break;
  }
  if (unknown.length > 0)
    issues.push({ code: "unrecognized_keys", keys: unknown, path: [], message: "Unrecognized keys" });
  return issues;
}

function addAt(to: Issue[], key: PropertyKey, issues: readonly Issue[]): void {
  for (const each of issues.slice(0, issuesMax)) to.push({ ...each, path: [key, ...each.path] });
}

const isLarge = (value: unknown): boolean => valuesLeft(value, largeValues) < 0;

/** The rest of a budget of values after this one and all inside it. Negative as soon as it is exceeded. */
function valuesLeft(value: unknown, budget: number): number {
  let left = budget - 1;
  if (typeof value !== "object" || value === null) return left;
  for (const key in value) {
    if (left < 0) return left;
    left = valuesLeft((value as Record<string, unknown>)[key], left);
  }
  return left;
}
