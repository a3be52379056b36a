import { stripTypeScriptTypes } from "node:module";
import { tokenizer, tokTypes } from "acorn";
import { expect, it } from "vitest";
import { pumpedTexts } from "./helpers/pumps.ts";
import { product, text } from "./helpers/sources.ts";

/** Every list in the input of an operation has a limit on its length, and no expression is slow on long texts. */

type Node = { [key: string]: unknown } | unknown[] | string | number | boolean | null | undefined;
interface OpenApi {
  paths: Record<string, Record<string, { operationId: string; requestBody?: Node; parameters?: Node[] }>>;
  components: { schemas: Record<string, Node> };
}

/** Names of this form are any JSON, as in a message's body, and limited in bytes. */
const anyJson = /^__schema\d+$/;
/** Refused by name for every body; and a body that is any JSON. */
const free = new Set(["queue_subscription_create", "workflow_instance_event_of_type"]);

it("limits every list of every operation's input", () => {
  const { paths, components } = JSON.parse(text("openapi.json")) as OpenApi;
  const unlimited: string[] = [];
  const walk = (node: Node, path: string, within: readonly string[]): void => {
    if (typeof node !== "object" || node === null) return;
    if ("$ref" in node) {
      const name = String(node["$ref"]).split("/").at(-1)!;
      if (!within.includes(name) && !anyJson.test(name))
        walk(components.schemas[name], `${path} ${name}`, [...within, name]);
      return;
    }
    if ("type" in node && node["type"] === "array" && !("maxItems" in node)) unlimited.push(path);
    for (const [key, part] of Object.entries(node)) walk(part as Node, `${path}.${key}`, within);
  };
  const operations = Object.values(paths).flatMap((methods) => Object.values(methods));
  expect(operations.length).toBeGreaterThan(300);
  for (const { operationId, requestBody, parameters } of operations) {
    if (free.has(operationId)) continue;
    walk(requestBody, operationId, []);
    walk(parameters, operationId, []);
  }
  expect(unlimited).toEqual([]);
});

interface RegExpParts {
  pattern: string;
  flags: string;
}

/** Regular expressions that take longer, and the reason why this does not matter. */
const shortInputsOnly = new Map([
  ["src/platform/access-log/declaration.ts", "names have at most 256 characters"],
]);

it("gives every regular expression time in proportion to its input", () => {
  const slow: string[] = [];
  const seen = new Set<string>();
  for (const file of product) {
    if (shortInputsOnly.has(file)) continue;
    const options = { ecmaVersion: "latest", sourceType: "module", allowHashBang: true } as const;
    for (const token of tokenizer(stripTypeScriptTypes(text(file)), options)) {
      if (token.type !== tokTypes.regexp) continue;
      const { pattern, flags } = (token as unknown as { value: RegExpParts }).value;
      const expression = new RegExp(pattern, flags);
      if (seen.has(String(expression))) continue;
      seen.add(String(expression));
      if (isSlow(expression)) slow.push(`${file}: ${String(expression)}`);
    }
  }
  expect(seen.size).toBeGreaterThan(400);
  expect(slow).toEqual([]);
});

it("finds regular expressions that are slow", () => {
  const slow = [/x+$/, /\[([^\]]*)\]/g, /^b\s*=\s*(\d*)\s*-\s*$/, /^_+|_+$/g];
  expect(slow.filter((each) => !isSlow(each))).toEqual([]);
});

/** A quadratic expression takes 100 to 200 ms for 24,000 characters, a linear one less than one. */
const slowMs = 25;

function isSlow(expression: RegExp): boolean {
  // The shorter texts find expressions that would take hours for the longer ones.
  return [30, 1000, 24_000].some((length) =>
    pumpedTexts(expression, length).some((input) =>
      // A pause of the machine does not come three times.
      [1, 2, 3].every(() => {
        const start = performance.now();
        expression.lastIndex = 0;
        input.replace(expression, "");
        return performance.now() - start > slowMs;
      }),
    ),
  );
}
