import { imageErrors } from "./errors.ts";

type Scalar = string | number | boolean;
type Operator = "eq" | "in" | "gt" | "gte" | "lt" | "lte";

/** A condition on one field of an image's metadata. */
export interface MetadataFilter {
  path: string[];
  operator: Operator;
  values: Scalar[];
}

const filtersMax = 5;
const levelsMax = 5;
const valuesMax = 10;
const keyPattern = /^meta\.(\w+(?:\.\w+)*)\[(eq|in|gt|gte|lt|lte)(?::(string|number|boolean))?\]$/;

/** Parses the filters of a query: `meta.<field>[<operator>:<type>]=<value>`. */
export function parseMetadataFilters(query: Record<string, unknown>): MetadataFilter[] {
  const filters: MetadataFilter[] = [];
  for (const [key, value] of Object.entries(query)) {
    if (!key.startsWith("meta.")) continue;
    const match = keyPattern.exec(key);
    const path = match?.[1]!.split(".") ?? [];
    if (match === null || path.length > levelsMax)
      throw imageErrors.invalidUpload(
        `Expected meta.<field>[eq, in, gt, gte, lt or lte, and optionally :string, :number or :boolean] with at most ${levelsMax} levels but received ${JSON.stringify(key)}`,
        `/query/${key}`,
      );
    for (const text of Array.isArray(value) ? (value as string[]) : [String(value)]) {
      const operator = match[2] as Operator;
      const texts = operator === "in" ? text.split("|") : [text];
      if (texts.length > valuesMax)
        throw imageErrors.invalidUpload(`Expected at most ${valuesMax} values for ${key}`, `/query/${key}`);
      filters.push({ path, operator, values: texts.map((each) => typed(each, match[3], key)) });
    }
  }
  if (filters.length > filtersMax)
    throw imageErrors.invalidUpload(`Expected at most ${filtersMax} filters on metadata`, "/query");
  return filters;
}

function typed(text: string, type: string | undefined, key: string): Scalar {
  if (type === "number") {
    const number = Number(text);
    if (text.trim() !== "" && Number.isFinite(number)) return number;
  } else if (type === "boolean") {
    if (text === "true" || text === "false") return text === "true";
  } else return text;
  throw imageErrors.invalidUpload(
    `Expected a ${type} for ${key} but received ${JSON.stringify(text)}`,
    `/query/${key}`,
  );
}

export const matchesMetadata = (meta: Record<string, unknown>, filters: readonly MetadataFilter[]): boolean =>
  filters.every((filter) => matches(valueAt(meta, filter.path), filter));

function valueAt(meta: unknown, path: readonly string[]): unknown {
  let value = meta;
  for (const step of path) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, step)) return undefined;
    value = (value as Record<string, unknown>)[step];
  }
  return value;
}

function matches(value: unknown, { operator, values }: MetadataFilter): boolean {
  if (operator === "eq" || operator === "in") return values.some((each) => each === value);
  const [bound] = values;
  if (typeof value !== typeof bound || (typeof value !== "number" && typeof value !== "string")) return false;
  if (operator === "gt") return value > bound!;
  if (operator === "gte") return value >= bound!;
  return operator === "lt" ? value < bound! : value <= bound!;
}
