import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parse, type Node } from "acorn";

/** One API call that a method of the official client makes. */
export interface SdkCall {
  /** The file of the class, relative to the package, without extension. */
  file: string;
  className: string;
  method: string;
  httpMethod: string;
  /** With "{}" for each parameter. */
  path: string;
  /** The return value of the method: the envelope's result, a page of results, or the whole answer. */
  gives: "result" | "page" | "answer";
}

type Loose = Node & Record<string, unknown>;
const verbs = new Set(["get", "post", "put", "patch", "delete", "getAPIList"]);

/** Reads the methods of the client from its code. `folder` is its `node_modules/cloudflare`. */
export function sdkCalls(folder: string): SdkCall[] {
  return globSync("resources/**/*.js", { cwd: folder })
    .toSorted()
    .flatMap((file) => {
      const program: unknown = parse(readFileSync(join(folder, file), "utf8"), { ecmaVersion: "latest" });
      const calls: SdkCall[] = [];
      for (const each of nodesOf(program as Loose, "ClassDeclaration")) {
        const className = nameOf(each["id"]);
        for (const method of nodesOf(each, "MethodDefinition")) {
          const name = nameOf(method["key"]);
          const own = nodesOf(method, "CallExpression");
          const unwraps = own.some(({ callee }) => nameOf((callee as Loose)["property"]) === "_thenUnwrap");
          for (const { callee, arguments: args } of own as (Loose & {
            callee: Loose;
            arguments: Loose[];
          })[]) {
            const verb = nameOf(callee["property"]);
            if (
              !verbs.has(verb) ||
              nameOf((callee["object"] as Loose | undefined)?.["property"]) !== "_client"
            )
              continue;
            const path = args[0] === undefined ? undefined : pathOf(args[0]);
            if (path === undefined) continue;
            const isList = verb === "getAPIList";
            const listMethod = args[2] === undefined ? undefined : methodOption(args[2]);
            calls.push({
              file: file.replace(/\.js$/, ""),
              className,
              method: name,
              httpMethod: isList ? (listMethod ?? "GET") : verb.toUpperCase(),
              path,
              gives: isList ? "page" : unwraps ? "result" : "answer",
            });
          }
        }
      }
      return calls;
    });
}

/** The paths of a call: one for each scope (accounts, zones) if the scope is a parameter. */
export function pathsOf({ path }: SdkCall): string[] {
  return path.startsWith("/{}/{}") ? ["accounts", "zones"].map((owner) => path.replace("{}", owner)) : [path];
}

function nodesOf(node: Loose, type: string): Loose[] {
  const found: Loose[] = node.type === type ? [node] : [];
  for (const value of Object.values(node)) {
    for (const each of Array.isArray(value) ? (value as unknown[]) : [value])
      if (isNode(each)) found.push(...nodesOf(each, type));
  }
  return found;
}
const isNode = (value: unknown): value is Loose =>
  typeof value === "object" && value !== null && "type" in value && "start" in value;
const nameOf = (node: unknown): string =>
  isNode(node) && typeof node["name"] === "string" ? node["name"] : "";

function pathOf(node: Loose): string | undefined {
  if (node.type === "Literal") return typeof node["value"] === "string" ? node["value"] : undefined;
  const template = (node.type === "TaggedTemplateExpression" ? node["quasi"] : node) as Loose;
  if (template.type !== "TemplateLiteral") return undefined;
  const texts = template["quasis"] as { value: { cooked: string } }[];
  return texts.map(({ value }) => value.cooked).join("{}");
}

/** The HTTP method of a list that does not use GET. */
function methodOption(options: Loose): string | undefined {
  const properties = (options["properties"] ?? []) as Loose[];
  const method = properties.find((each) => nameOf(each["key"]) === "method");
  return method === undefined ? undefined : String((method["value"] as Loose)["value"]).toUpperCase();
}
