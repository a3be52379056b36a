import { readFileSync } from "node:fs";
import type { Random } from "../../name-server/random.ts";
import { oddParts, type Surroundings } from "./http1.ts";

interface Schema {
  $ref?: string;
  type?: string | string[];
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  enum?: unknown[];
  const?: unknown;
  anyOf?: Schema[];
  minimum?: number;
}
interface Described {
  paths: Record<string, Record<string, { requestBody?: { content: Record<string, { schema: Schema }> } }>>;
  components: { schemas: Record<string, Schema> };
}

const oddValues: readonly unknown[] = [
  ...[
    null,
    true,
    0,
    -1,
    1e308,
    0.1,
    2 ** 53,
    "",
    "a",
    "\0",
    "\ud800",
    "é€😀",
    "__proto__",
    "%",
    "*",
    "1.2.3.4",
  ],
  ...["a.example", "http://a/", "${x}", "2026-02-30T25:00:00Z", "x".repeat(3000), [], {}, [[[[[]]]]], [null]],
  ...[
    { __proto__: null, constructor: 1 },
    { length: -1 },
    { toJSON: 1 },
    Array.from({ length: 300 }, () => "a"),
  ],
];

/** Calls of all operations in `openapi.json`, with bodies close to their schemas. */
export function describedCalls(ids: Record<string, string>): Surroundings["call"] {
  const described = JSON.parse(readFileSync("openapi.json", "utf8")) as Described;
  const calls = Object.entries(described.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { requestBody }]) => ({
      method: method.toUpperCase(),
      path: `/client/v4${path}`,
      schema: requestBody?.content["application/json"]?.schema,
      isForm: requestBody?.content["multipart/form-data"] !== undefined,
    })),
  );
  const find = (ref: string): Schema =>
    ref
      .split("/")
      .slice(1)
      .reduce<Schema>((node, part) => (node as Record<string, Schema>)[part]!, described as Schema);

  const value = (random: Random, schema: Schema, depth: number): unknown => {
    if (random.chance(6) || depth > 6) return random.pick(oddValues);
    if (schema.$ref !== undefined)
      return schema.$ref === "#" ? null : value(random, find(schema.$ref), depth + 1);
    if (schema.anyOf !== undefined) return value(random, random.pick(schema.anyOf), depth + 1);
    if (schema.enum !== undefined) return random.pick(schema.enum);
    if ("const" in schema) return schema.const;
    const type = Array.isArray(schema.type) ? random.pick(schema.type) : schema.type;
    if (type === "object") {
      const entries = Object.entries(schema.properties ?? { a: {} })
        .filter(([name]) => random.chance(schema.required?.includes(name) === true ? 97 : 40))
        .map(([name, each]) => [name, value(random, each, depth + 1)]);
      if (random.chance(4)) entries.push([random.pick(oddParts), random.pick(oddValues)]);
      return Object.fromEntries(entries);
    }
    if (type === "array")
      return Array.from({ length: random.below(4) }, () => value(random, schema.items ?? {}, depth + 1));
    if (type === "integer" || type === "number") return (schema.minimum ?? 0) + random.below(300);
    if (type === "boolean") return random.chance(50);
    if (type === "string") return random.pick(texts);
    return random.pick(oddValues);
  };
  const texts = ["a", "fuzz.example", "x.fuzz.example", "192.0.2.1", "text", "true", ...Object.values(ids)];

  return (random) => {
    const { method, path, schema, isForm } = random.pick(calls);
    const filled = path.replace(/\{(\w+)\}/g, (_, name: string) =>
      random.chance(90) ? (ids[name] ?? random.hex(16)) : random.pick(oddParts),
    );
    if (isForm) return { method, path: filled, body: form(random) };
    if (schema === undefined) return { method, path: filled };
    const text = JSON.stringify(value(random, schema, 0)) ?? "";
    return {
      method,
      path: filled,
      body: random.chance(95) ? text : text.slice(0, random.below(text.length + 1)),
    };
  };
}

/** Uses the boundary of the fuzzer's requests. */
function form(random: Random): string {
  const parts = Array.from({ length: random.below(4) }, () => {
    const name = random.pick(["metadata", "file", "files", "settings", "a.js", "__proto__", "\0", 'a"b']);
    const type = random.pick(["application/json", "application/javascript+module", "text/plain", "\xff", ""]);
    const body = random.pick([
      '{"main_module":"a.js"}',
      "{",
      "export default {}",
      "\0\xff",
      "",
      "null",
      "[]",
    ]);
    const file = random.chance(50) ? `; filename="${random.pick(["a.js", "../a", "\0", ""])}"` : "";
    return `--fuzz\r\ncontent-disposition: form-data; name="${name}"${file}\r\ncontent-type: ${type}\r\n\r\n${body}\r\n`;
  });
  return `${parts.join("")}${random.chance(85) ? "--fuzz--\r\n" : ""}`;
}
