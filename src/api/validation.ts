import type { z } from "zod";
import { show } from "../util/json.ts";
import { suggest } from "../util/suggest.ts";
import { ApiErrors, apiErrors, type ApiError } from "./errors.ts";

const errorsMax = 10;

/** Checks a value against its schema. `where` names the part of the request: "body" or "query". */
export function validate<S extends z.ZodType>(schema: S, value: unknown, where: string): z.output<S> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const errors = parsed.error.issues
    .slice(0, errorsMax)
    .flatMap((issue) => describe(issue, value, schema, where));
  throw new ApiErrors(errors);
}

function describe(issue: z.core.$ZodIssue, root: unknown, schema: z.ZodType, where: string): ApiError[] {
  const path = issue.path.map(String);
  const field = path.length === 0 ? `the ${where}` : path.join(".");
  const pointer = `/${where}${path.map((part) => `/${part.replaceAll("~", "~0").replaceAll("/", "~1")}`).join("")}`;
  const received = issue.path.reduce<unknown>(
    (value, key) => (value as Record<PropertyKey, unknown> | null)?.[key],
    root,
  );
  if (issue.code === "unrecognized_keys") {
    const known = path.length === 0 && "shape" in schema ? Object.keys(schema.shape as object) : [];
    return issue.keys.map((key) => {
      const meant = suggest(key, known);
      const hint = meant === undefined ? "" : ` (did you mean "${meant}"?)`;
      return apiErrors.invalid(`Unknown field "${key}" in ${field}${hint}`, `${pointer}/${key}`);
    });
  }
  const absent = received === undefined ? `, which is required` : ` but received ${show(received)}`;
  return [apiErrors.invalid(`Expected ${expectation(issue)} for ${field}${absent}`, pointer)];
}

function expectation(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case "invalid_type":
      return article(issue.expected);
    case "invalid_value":
      return issue.values.length === 1
        ? show(issue.values[0])
        : `one of ${issue.values.map(show).join(", ")}`;
    case "too_big":
      return `at most ${issue.maximum}${unit(issue.origin)}`;
    case "too_small":
      return `at least ${issue.minimum}${unit(issue.origin)}`;
    case "invalid_format":
      return issue.pattern === undefined ? article(issue.format) : `text matching ${issue.pattern}`;
    case "not_multiple_of":
      return `a multiple of ${issue.divisor}`;
    default:
      return issue.message.replace(/^expected /i, "");
  }
}

const article = (noun: string): string => (/^[aeiou]/.test(noun) ? `an ${noun}` : `a ${noun}`);
const unit = (origin: string): string =>
  origin === "string" ? " characters" : origin === "array" || origin === "set" ? " items" : "";
