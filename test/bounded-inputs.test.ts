import { expect, it } from "vitest";
import { text } from "./helpers/sources.ts";

/** Every list in the input of an operation has a limit on its length. */

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
