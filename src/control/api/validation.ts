import type { z } from "zod";
import { show } from "../../platform/util/json.ts";
import { isSensitiveAt } from "./sensitive.ts";
import { suggest } from "../../platform/util/suggest.ts";
import { ApiErrors, apiErrors, type ApiError } from "./errors.ts";
import { firstIssues, issuesMax } from "./first-issues.ts";

/**
 * Parses a value with its schema. `where` names the part of the request, "body" or "query". Throws ApiErrors.
 */
export function validate<S extends z.ZodType>(schema: S, value: unknown, where: string): z.output<S> {
  const early = firstIssues(schema, value);
  if (early.length > 0) throw errorsOf(early, schema, value, where);
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw errorsOf(parsed.error.issues, schema, value, where);
}

function errorsOf(
  issues: readonly z.core.$ZodIssue[],
  schema: z.ZodType,
  value: unknown,
  where: string,
): ApiErrors {
  const errors = withoutEchoes(issues)
    .slice(0, issuesMax)
    .flatMap((issue) => describe(issue, value, schema, where));
  return new ApiErrors(errors.slice(0, issuesMax));
}

function describe(issue: z.core.$ZodIssue, root: unknown, schema: z.ZodType, where: string): ApiError[] {
  if (issue.code === "invalid_union") {
    const nearest = nearestBranch(issue);
    if (nearest !== undefined) return nearest.flatMap((each) => describe(each, root, schema, where));
  }
  const field = fieldAt(issue.path, where);
  const pointer = pointerTo(issue.path, where);
  const received = issue.path.reduce<unknown>(
    (value, key) => (value as Record<PropertyKey, unknown> | null)?.[key],
    root,
  );
  if (issue.code === "unrecognized_keys") {
    const known = issue.path.length === 0 && "shape" in schema ? Object.keys(schema.shape as object) : [];
    return issue.keys.slice(0, issuesMax).map((key) => {
      const meant = key === "" ? undefined : suggest(key, known);
      const hint = meant === undefined ? "" : ` (did you mean "${meant}"?)`;
      return apiErrors.invalid(
        `Unknown field ${show(key)} in ${field}${hint}`,
        pointerTo([...issue.path, key], where),
      );
    });
  }
  if (issue.code === "invalid_key") {
    const [inner] = issue.issues;
    const parent = fieldAt(issue.path.slice(0, -1), where);
    const expected = inner === undefined ? "another key" : expectation(inner);
    const message = `Expected ${expected} for a key of ${parent} but received ${show(issue.path.at(-1))}`;
    return [apiErrors.invalid(message, pointer)];
  }
  const shown = isSensitiveAt(schema, issue.path) ? "another value" : show(received);
  const absent = received === undefined ? `, which is required` : ` but received ${shown}`;
  return [apiErrors.invalid(`Expected ${expectation(issue)} for ${field}${absent}`, pointer)];
}

/**
 * Keeps only the type error of a value of the wrong type: a text in place of a list is not also reported as
 * too long.
 */
function withoutEchoes(issues: readonly z.core.$ZodIssue[]): z.core.$ZodIssue[] {
  const wrongTypes = new Map<string, z.core.$ZodIssue>();
  for (const issue of issues) {
    const path = JSON.stringify(issue.path);
    if (issue.code === "invalid_type" && !wrongTypes.has(path)) wrongTypes.set(path, issue);
  }
  return issues.filter((issue) => (wrongTypes.get(JSON.stringify(issue.path)) ?? issue) === issue);
}

const unknownFields = (issues: readonly z.core.$ZodIssue[]): string[] =>
  issues.flatMap((issue) => (issue.code === "unrecognized_keys" ? issue.keys : []));

/**
 * The issues of the union's branch that the value's shape matches; undefined if it matches none. If no branch
 * knows a field, the unknown field is the issue: the fields that a branch misses would mislead.
 */
function nearestBranch(issue: z.core.$ZodIssueInvalidUnion): z.core.$ZodIssue[] | undefined {
  const branches = issue.errors.filter((issues) =>
    issues.every(({ path, code }) => path.length > 0 || code === "unrecognized_keys"),
  );
  const [nearest] = branches.toSorted((a, b) => unknownFields(a).length - unknownFields(b).length);
  const unknown = nearest?.find(({ code }) => code === "unrecognized_keys");
  const branch = unknown === undefined || branches.length === 1 ? nearest : [unknown];
  return branch?.map((each) => ({ ...each, path: [...issue.path, ...each.path] }));
}

/** A field as JavaScript would name it, such as `rules.0.action`; keys of other characters stand in brackets. */
function fieldAt(path: readonly PropertyKey[], where: string): string {
  if (path.length === 0) return `the ${where}`;
  const isPlain = (part: PropertyKey): boolean => /^[\w$.:@[\]-]+$/.test(String(part));
  const named = path.map((part) => (isPlain(part) ? `.${String(part)}` : `[${show(part)}]`)).join("");
  return named.startsWith(".") ? named.slice(1) : where + named;
}

const pointerTo = (path: readonly PropertyKey[], where: string): string =>
  `/${where}${path.map((part) => `/${String(part).replaceAll("~", "~0").replaceAll("/", "~1")}`).join("")}`;

function expectation(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case "invalid_type":
      return typeName(issue.expected);
    case "invalid_value":
      return oneOf(issue.values);
    case "too_big":
      return `at most ${counted(issue.maximum, issue.origin)}`;
    case "too_small":
      return `at least ${counted(issue.minimum, issue.origin)}`;
    case "invalid_format":
      // Zod's own messages begin with "Invalid"; a schema's own message names what it expects.
      if (!issue.message.startsWith("Invalid")) return issue.message;
      return issue.pattern === undefined ? article(issue.format) : `text matching ${issue.pattern}`;
    case "not_multiple_of":
      return `a multiple of ${issue.divisor}`;
    case "invalid_union":
      return "options" in issue && issue.options !== undefined
        ? oneOf(issue.options)
        : anyOf(issue.errors.flatMap(([first]) => (first === undefined ? [] : [expectation(first)])));
    default:
      return issue.message.replace(/^expected /i, "");
  }
}

const oneOf = (values: readonly unknown[]): string =>
  values.length === 1 ? show(values[0]) : `one of ${values.map(show).join(", ")}`;

/** Every type that JSON has. */
const jsonTypes = ["string", "number", "boolean", "null", "array", "object"];

function anyOf(expected: readonly string[]): string {
  const all = [...new Set(expected)];
  if (jsonTypes.every((type) => all.includes(typeName(type)))) return "any JSON value";
  return all.length < 2 ? (all[0] ?? "another value") : `${all.slice(0, -1).join(", ")} or ${all.at(-1)}`;
}

const article = (noun: string): string => (/^[aeiou]/.test(noun) ? `an ${noun}` : `a ${noun}`);
const typeNames: Readonly<Record<string, string>> = { record: "object", int: "whole number" };
const typeName = (type: string): string => (type === "null" ? type : article(typeNames[type] ?? type));

function counted(limit: number | bigint, origin: string): string {
  const noun =
    origin === "string" ? "character" : origin === "array" || origin === "set" ? "item" : undefined;
  return noun === undefined ? String(limit) : `${limit} ${noun}${limit === 1 ? "" : "s"}`;
}
