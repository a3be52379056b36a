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
      schemas: byName({ ...schemas, Failure: failureSchema(schemas) }),
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
  const contentType = operation.bodyKind === "json" ? "application/json" : "multipart/form-data";
  return {
    operationId: operation.id,
    summary: operation.summary,
    tags: [operation.path.split("/").findLast((part) => part !== "" && !part.startsWith("{"))],
    "x-permission": "permission" in operation.access ? operation.access.permission : null,
    parameters: [...pathParameters, ...queryParameters],
    ...(operation.body === undefined
      ? {}
      : {
          requestBody: {
            required: !operation.bodyOptional,
            content: { [contentType]: { schema: jsonSchema(operation.body, "input", schemas) } },
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

/** The JSON schema of a zod schema. A schema with an id is described once, under components. */
function jsonSchema(schema: z.ZodType, io: "input" | "output", schemas: Json): Json {
  const made = z.toJSONSchema(schema, { io, unrepresentable: "any" }) as Json;
  delete made["$schema"];
  const definitions = (made["$defs"] ?? {}) as Json;
  delete made["$defs"];
  for (const [id, definition] of Object.entries(definitions)) schemas[id] ??= relink(definition as Json);
  const id = schema.meta()?.["id"];
  if (typeof id === "string") {
    schemas[id] ??= relink(withoutId(made));
    return { $ref: `#/components/schemas/${id}` };
  }
  return relink(made);
}

const withoutId = ({ id: _id, $id: _dollarId, ...rest }: Json): Json => rest;
const relink = (schema: Json): Json =>
  JSON.parse(JSON.stringify(schema).replaceAll('"#/$defs/', '"#/components/schemas/')) as Json;
