import { z } from "zod";
import { ErrorSchema, ResultInfoSchema } from "../../src/control/api/envelope.ts";
import type { Operation } from "../../src/control/api/operation.ts";
import { operations } from "../../src/capabilities.ts";

type Json = Record<string, unknown>;

/** The text of openapi.json, from the declarations of the operations. */
export function openapi(): string {
  const schemas: Json = {};
  const paths: Record<string, Json> = {};
  for (const operation of operations) {
    (paths[operation.path] ??= {})[operation.method.toLowerCase()] = describe(operation, schemas);
  }
  schemas["Failure"] = failureSchema(schemas);
  const document = {
    openapi: "3.1.0",
    info: {
      title: "Selvedge management API",
      version: "4",
      description:
        "The part of the Cloudflare API v4 that Selvedge serves. `edge` in a path may also be written `argo` or `workers`.",
    },
    servers: [{ url: "http://127.0.0.1:8787/client/v4" }],
    security: [{ token: [] }, { email: [], key: [] }],
    paths: byName(paths),
    components: {
      schemas: byName(schemas),
      securitySchemes: {
        token: { type: "http", scheme: "bearer" },
        email: { type: "apiKey", in: "header", name: "X-Auth-Email" },
        key: { type: "apiKey", in: "header", name: "X-Auth-Key" },
      },
    },
  };
  return `${JSON.stringify(document, null, 1)}\n`;
}

/** The same entries in alphabetical order, so that the order of declarations does not matter. */
const byName = (entries: Json): Json =>
  Object.fromEntries(Object.entries(entries).sort(([a], [b]) => (a < b ? -1 : 1)));

function describe(operation: Operation, schemas: Json): Json {
  const pathParameters = [...operation.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: "path",
    required: true,
    schema: { type: "string" },
  }));
  const queryParameters = Object.entries(operation.query?.shape ?? {}).map(([name, schema]) => ({
    name,
    in: "query",
    schema: jsonSchema(schema as z.ZodType, "input", schemas),
  }));
  const headerParameters =
    operation.takesIfMatch === true
      ? [
          {
            name: "If-Match",
            in: "header",
            description: "The tag of the state that the caller has seen; 412 if it is another one now",
            schema: { type: "string" },
          },
        ]
      : [];
  const isOwn = operation.bodyKind !== "json";
  const contentTypes = [
    ...(!isOwn || operation.acceptAnyContentType === true ? ["application/json"] : []),
    ...(isOwn ? ["multipart/form-data"] : []),
  ];
  const bodySchema = operation.body && { schema: jsonSchema(operation.body, "input", schemas) };
  return {
    operationId: operation.id,
    summary: operation.summary,
    tags: [operation.path.split("/").findLast((part) => part !== "" && !part.startsWith("{"))],
    "x-permission": "permission" in operation.access ? operation.access.permission : null,
    "x-scope": operation.access.scope,
    parameters: [...pathParameters, ...queryParameters, ...headerParameters],
    ...(operation.body === undefined
      ? {}
      : {
          requestBody: {
            required: !operation.bodyOptional,
            content: Object.fromEntries(contentTypes.map((type) => [type, bodySchema])),
          },
        }),
    responses: {
      [operation.status ?? 200]: { description: "Success", ...success(operation, schemas) },
      default: {
        description: "Failure",
        content: { "application/json": { schema: { $ref: "#/components/schemas/Failure" } } },
      },
    },
  };
}

function success(operation: Operation, schemas: Json): Json {
  if (operation.result === undefined) return {};
  const result = jsonSchema(operation.result, "input", schemas);
  const isPage = operation.answer === "page";
  const properties = {
    result: isPage ? { type: "array", items: result } : result,
    success: { const: true },
    errors: { type: "array", maxItems: 0 },
    messages: { type: "array" },
    ...(isPage ? { result_info: jsonSchema(ResultInfoSchema, "input", schemas) } : {}),
  };
  const schema = { type: "object", properties, required: Object.keys(properties) };
  return { content: { "application/json": { schema } } };
}

const failureSchema = (schemas: Json): Json => ({
  type: "object",
  properties: {
    result: { type: "null" },
    success: { const: false },
    errors: { type: "array", minItems: 1, items: jsonSchema(ErrorSchema, "input", schemas) },
    messages: { type: "array" },
  },
  required: ["result", "success", "errors", "messages"],
});

/** The JSON schema of a zod schema. Schemas with an id are moved to components, and referred to. */
function jsonSchema(schema: z.ZodType, io: "input" | "output", schemas: Json): Json {
  const {
    $schema: _,
    $defs: definitions = {},
    ...made
  } = z.toJSONSchema(schema, { io, unrepresentable: "any" }) as Json;
  const names = new Map(
    Object.entries(definitions as Record<string, Json>).map(([id, each]) => [
      `#/$defs/${id}`,
      nameOf(id, each),
    ]),
  );
  const given = schema.meta()?.["id"];
  const own = typeof given === "string" ? given : isRecursive(made) ? nameOf("#", made) : undefined;
  if (own !== undefined) names.set("#", own);
  for (const [id, each] of Object.entries(definitions as Record<string, Json>))
    schemas[nameOf(id, each)] ??= componentOf(nameOf(id, each), each, names);
  if (own === undefined) return relink(made, names);
  schemas[own] ??= componentOf(own, made, names);
  return { $ref: `#/components/schemas/${own}` };
}

const anyJson = "JsonValue";
const isRecursive = (schema: Json): boolean => JSON.stringify(schema).includes('"$ref":"#"');

/** The name of a schema under components. The only recursive schema without an id is that of any JSON. */
function nameOf(id: string, schema: Json): string {
  if (id !== "#" && !id.startsWith("__schema")) return id;
  const types = (schema["anyOf"] as Json[] | undefined)?.map(({ type }) => type) ?? [];
  if (types.includes("array") && types.includes("object") && types.includes("null")) return anyJson;
  throw new Error("Expected .meta({ id }) on a recursive schema");
}

/** Any JSON is described without recursion, because type generators fail on a recursive description. */
const componentOf = (name: string, schema: Json, names: ReadonlyMap<string, string>): Json =>
  name === anyJson ? { description: "Any JSON value" } : relink(withoutId(schema), names);

const withoutId = ({ id: _id, $id: _dollarId, ...rest }: Json): Json => rest;

/** The schema with references to names under components in place of those to definitions, and to itself. */
const relink = (schema: Json, names: ReadonlyMap<string, string>): Json =>
  JSON.parse(JSON.stringify(schema), (key, value: unknown) =>
    key === "$ref" && typeof value === "string" ? `#/components/schemas/${names.get(value)}` : value,
  ) as Json;
