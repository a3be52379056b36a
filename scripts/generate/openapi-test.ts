import { z } from "zod";
import { controlPath, type ControlRoute } from "../../src/test-api/control.ts";
import { controlRoutes, type Controlled } from "../../src/test-api/routes.ts";

type Json = Record<string, unknown>;

/** The text of openapi-test.json, from the routes of the control surface. */
export function openapiTest(): string {
  // No route is called, so no platform is needed.
  const routes = controlRoutes({ cells: {}, workflows: {}, scripts: {} } as Controlled);
  const paths: Record<string, Json> = {};
  for (const route of routes)
    (paths[route.path || "/"] ??= {})[route.method.toLowerCase()] = described(route);
  const document = {
    openapi: "3.1.0",
    info: {
      title: "Selvedge test control",
      version: "1",
      description:
        "Control of a platform by tests, with --test-api only. The ready file has the URL and the secret, in `control`.",
    },
    servers: [{ url: `http://127.0.0.1:8787${controlPath}` }],
    security: [{ secret: [] }],
    paths: Object.fromEntries(Object.entries(paths).sort(([a], [b]) => (a < b ? -1 : 1))),
    components: {
      securitySchemes: { secret: { type: "http", scheme: "bearer" } },
      schemas: {
        Failure: { type: "object", properties: { error: { type: "string" } }, required: ["error"] },
      },
    },
  };
  return `${JSON.stringify(document, null, 1)}\n`;
}

function described({ method, path, summary, query = [], body }: ControlRoute): Json {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!);
  const text = { schema: { type: "string" } };
  const failure = {
    description: "The request is refused, with the reason",
    content: { "application/json": { schema: { $ref: "#/components/schemas/Failure" } } },
  };
  return {
    operationId: [method.toLowerCase(), ...path.split(/\W+/).filter(Boolean)].join("_"),
    summary,
    parameters: [
      ...names.map((name) => ({ name, in: "path", required: true, ...text })),
      ...query.map((name) => ({ name, in: "query", ...text })),
    ],
    ...(body === undefined
      ? {}
      : { requestBody: { content: { "application/json": { schema: schemaOf(body) } } } }),
    responses: { "200": { description: "Done" }, "4XX": failure },
  };
}

function schemaOf(body: z.ZodType): Json {
  const { $schema: _, ...schema } = z.toJSONSchema(body, { io: "input", unrepresentable: "any" });
  return schema;
}
