/** A schema of openapi.json; the keywords that a sample needs. */
export interface Schema {
  type?: string | string[];
  enum?: unknown[];
  default?: unknown;
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  anyOf?: Schema[];
  oneOf?: Schema[];
  $ref?: string;
  const?: unknown;
}

const depthMax = 5;

/** A value that fits a schema: its required fields, with defaults and first choices. */
export function sampleOf(schema: Schema, schemas: Readonly<Record<string, Schema>>, depth = 0): unknown {
  if (schema.$ref !== undefined) {
    const named = schemas[schema.$ref.replace("#/components/schemas/", "")];
    return named === undefined || depth > depthMax ? null : sampleOf(named, schemas, depth + 1);
  }
  if (schema.default !== undefined) return schema.default;
  if (schema.const !== undefined) return schema.const;
  if (schema.enum !== undefined) return schema.enum[0];
  const choice = schema.anyOf ?? schema.oneOf;
  if (choice !== undefined) return sampleOf(choice[0]!, schemas, depth + 1);
  const type = Array.isArray(schema.type) ? schema.type[0] : schema.type;
  if (type === "array")
    return schema.items === undefined || depth > depthMax ? [] : [sampleOf(schema.items, schemas, depth + 1)];
  if (type === "object" || schema.properties !== undefined) {
    const required = new Set(schema.required);
    return Object.fromEntries(
      Object.entries(schema.properties ?? {})
        .filter(([name]) => required.has(name))
        .map(([name, each]) => [name, sampleOf(each, schemas, depth + 1)]),
    );
  }
  return { string: "", integer: 0, number: 0, boolean: false }[type ?? "null"] ?? null;
}
