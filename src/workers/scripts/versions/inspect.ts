import { isBuiltin } from "node:module";
import type * as acorn from "acorn";
import type { Module, NamedHandler } from "../runtime-script.ts";

/** Findings in the source of a script, or the reason why it cannot run. */
export type Inspection =
  | { fault: string }
  | {
      /** Event handlers of the default export. */
      handlers: string[];
      namedHandlers: NamedHandler[];
      /** All exported names; undefined if `export *` hides some. */
      exportNames: string[] | undefined;
    };

type Parse = (typeof acorn)["parse"];
type SyntaxNode = acorn.AnyNode;
interface Parsed {
  name: string;
  /** Empty for CommonJS. */
  body: readonly (acorn.Statement | acorn.ModuleDeclaration)[];
}

const eventHandlers: ReadonlySet<string> = new Set([
  "fetch",
  "scheduled",
  "queue",
  "tail",
  "tailStream",
  "trace",
  "email",
]);
const hopsMax = 20;

/** Parses the JavaScript of a script, checks its imports, and finds its handlers. */
export async function inspect(modules: readonly Module[], mainModule: string): Promise<Inspection> {
  const { parse } = await import("acorn");
  const parsed = new Map<string, Parsed>();
  const names = new Set(modules.map((module) => plainName(module.name)));
  for (const module of modules) {
    if (module.kind !== "js" && module.kind !== "cjs") continue;
    const program = tryParse(parse, module);
    if ("fault" in program) return program;
    const body = module.kind === "js" ? program.body : [];
    const missing = body
      .map((node) => missingImport(node, module.name, names))
      .find((each) => each !== undefined);
    if (missing !== undefined)
      return { fault: `Uncaught Error: No such module "${missing}", imported from "${module.name}"` };
    parsed.set(plainName(module.name), { name: module.name, body });
  }
  const source = modules.find(({ name, kind }) => name === mainModule && kind === "cjs")?.content;
  if (typeof source === "string") return listeners(source);
  const main = parsed.get(plainName(mainModule));
  if (main === undefined)
    return { fault: `No such module "${mainModule}", which the metadata names as main_module` };
  return new Exports(parsed).inspect(main);
}

/** The events that a script registers listeners for. A name that is not a literal counts as "fetch". */
function listeners(source: string): Inspection {
  const calls = [...source.matchAll(/addEventListener\s*\(\s*(?:["'`](\w+)["'`])?/g)];
  if (calls.length === 0) return { fault: "No event handlers were registered. This script does nothing." };
  const named = calls.flatMap(([, name]) => (name !== undefined && eventHandlers.has(name) ? [name] : []));
  const handlers = [...new Set(named.length === 0 ? ["fetch"] : named)];
  return { handlers, namedHandlers: [], exportNames: [] };
}

function tryParse(parse: Parse, { name, kind, content }: Module): acorn.Program | { fault: string } {
  try {
    return parse(content as string, {
      ecmaVersion: "latest",
      sourceType: kind === "js" ? "module" : "script",
      allowReturnOutsideFunction: kind === "cjs",
      allowHashBang: true,
      locations: false,
    });
  } catch (error) {
    const { loc, message } = error as { loc?: acorn.Position; message: string };
    if (error instanceof RangeError || /stack space/.test(message))
      return { fault: `Uncaught RangeError: "${name}" is nested too deeply` };
    if (loc === undefined) throw error; // an error of this program, not of the script
    const what = message.replace(/ \(\d+:\d+\)$/, "");
    return { fault: `Uncaught SyntaxError: ${what} at ${name}:${loc.line}:${loc.column + 1}` };
  }
}

const plainName = (name: string): string => name.replace(/^(\.?\/)+/, "");

/** The first import specifier of a statement that matches no module. */
function missingImport(node: SyntaxNode, importer: string, names: ReadonlySet<string>): string | undefined {
  if (
    node.type !== "ImportDeclaration" &&
    node.type !== "ExportAllDeclaration" &&
    node.type !== "ExportNamedDeclaration"
  )
    return undefined;
  const specifier = node.source?.value;
  if (typeof specifier !== "string") return undefined;
  if (/^(node|cloudflare|workerd):/.test(specifier) || isBuiltin(specifier)) return undefined;
  return names.has(resolveName(specifier, importer)) || names.has(plainName(specifier))
    ? undefined
    : specifier;
}

function resolveName(specifier: string, importer: string): string {
  const url = URL.parse(specifier, `file:///${plainName(importer)}`);
  try {
    return url === null ? specifier : plainName(decodeURIComponent(url.pathname));
  } catch {
    return specifier;
  }
}

/** The shape of an exported value, as far as the source shows it. */
type Shape =
  | { kind: "handlers" | "class"; names: string[]; isComplete: boolean }
  | { kind: "unknown" }
  | { kind: "other" };

class Exports {
  readonly #modules: ReadonlyMap<string, Parsed>;

  constructor(modules: ReadonlyMap<string, Parsed>) {
    this.#modules = modules;
  }

  inspect(main: Parsed): Inspection {
    const shapes = new Map<string, Shape>();
    let isOpen = false;
    for (const name of this.#exportNames(main)) {
      if (name === "*") isOpen = true;
      else shapes.set(name, this.#exported(main, name, 0));
    }
    const main_ = shapes.get("default");
    const handlers = main_ === undefined ? [] : handlersOf(main_);
    shapes.delete("default");
    const namedHandlers = [...shapes].flatMap(([name, shape]) =>
      shape.kind === "class" || (shape.kind === "handlers" && handlersOf(shape).length > 0)
        ? [{ name, handlers: handlersOf(shape) }]
        : [],
    );
    const canRun =
      handlers.length > 0 ||
      namedHandlers.length > 0 ||
      isOpen ||
      [...shapes.values()].some(({ kind }) => kind === "unknown");
    if (!canRun) return { fault: "No event handlers were registered. This script does nothing." };
    return { handlers, namedHandlers, exportNames: isOpen ? undefined : [...shapes.keys()] };
  }

  #exportNames({ body }: Parsed): string[] {
    return body.flatMap((node) => {
      if (node.type === "ExportDefaultDeclaration") return ["default"];
      if (node.type === "ExportAllDeclaration") return [node.exported == null ? "*" : nameOf(node.exported)];
      if (node.type !== "ExportNamedDeclaration") return [];
      return [
        ...node.specifiers.map(({ exported }) => nameOf(exported)),
        ...declaredNames(node.declaration ?? undefined),
      ];
    });
  }

  #exported(module: Parsed, name: string, hops: number): Shape {
    if (hops > hopsMax) return { kind: "unknown" };
    for (const node of module.body) {
      if (node.type === "ExportDefaultDeclaration" && name === "default")
        return this.#shape(module, node.declaration, hops);
      if (node.type !== "ExportNamedDeclaration") continue;
      if (declaredNames(node.declaration ?? undefined).includes(name))
        return this.#declared(module, name, hops);
      const specifier = node.specifiers.find(({ exported }) => nameOf(exported) === name);
      if (specifier === undefined) continue;
      if (node.source == null) return this.#declared(module, nameOf(specifier.local), hops);
      return this.#imported(module, String(node.source.value), nameOf(specifier.local), hops);
    }
    return { kind: "unknown" };
  }

  #imported(importer: Parsed, specifier: string, name: string, hops: number): Shape {
    const target =
      this.#modules.get(resolveName(specifier, importer.name)) ?? this.#modules.get(plainName(specifier));
    return target === undefined ? { kind: "unknown" } : this.#exported(target, name, hops + 1);
  }

  /** The value of a name in a module's scope. */
  #declared(module: Parsed, name: string, hops: number): Shape {
    if (hops > hopsMax) return { kind: "unknown" };
    for (const statement of module.body) {
      if (statement.type === "ImportDeclaration") {
        const specifier = statement.specifiers.find(({ local }) => local.name === name);
        if (specifier?.type === "ImportSpecifier")
          return this.#imported(module, String(statement.source.value), nameOf(specifier.imported), hops);
        if (specifier?.type === "ImportDefaultSpecifier")
          return this.#imported(module, String(statement.source.value), "default", hops);
        if (specifier !== undefined) return { kind: "unknown" };
      }
      const declaration = statement.type === "ExportNamedDeclaration" ? statement.declaration : statement;
      if (declaration?.type === "ClassDeclaration" && declaration.id?.name === name)
        return this.#shape(module, declaration, hops);
      if (declaration?.type === "FunctionDeclaration" && declaration.id?.name === name)
        return { kind: "other" };
      if (declaration?.type !== "VariableDeclaration") continue;
      for (const { id, init } of declaration.declarations) {
        if (id.type === "Identifier" && id.name === name)
          return init == null ? { kind: "unknown" } : this.#shape(module, init, hops + 1);
      }
    }
    return { kind: "unknown" };
  }

  #shape(module: Parsed, node: SyntaxNode, hops: number): Shape {
    switch (node.type) {
      case "ObjectExpression":
        return objectShape(node);
      case "ClassDeclaration":
      case "ClassExpression":
        return { kind: "class", names: methods(node.body), isComplete: node.superClass == null };
      case "Identifier":
        return this.#declared(module, node.name, hops + 1);
      case "ParenthesizedExpression":
        return this.#shape(module, node.expression, hops);
      case "FunctionDeclaration":
      case "FunctionExpression":
      case "ArrowFunctionExpression":
      case "Literal":
      case "TemplateLiteral":
      case "ArrayExpression":
        return { kind: "other" };
      default:
        return { kind: "unknown" };
    }
  }
}

function objectShape(node: acorn.ObjectExpression): Shape {
  const names: string[] = [];
  let isComplete = true;
  for (const property of node.properties) {
    if (property.type === "SpreadElement" || property.computed) isComplete = false;
    else names.push(nameOf(property.key as acorn.Identifier | acorn.Literal));
  }
  return { kind: "handlers", names, isComplete };
}

const methods = ({ body }: acorn.ClassBody): string[] =>
  body.flatMap((member) =>
    (member.type === "MethodDefinition" || member.type === "PropertyDefinition") &&
    !member.static &&
    !member.computed &&
    member.key.type === "Identifier" &&
    member.key.name !== "constructor"
      ? [member.key.name]
      : [],
  );

/** A value that the source does not show, for example one made by a framework, is assumed to handle requests. */
function handlersOf(shape: Shape): string[] {
  if (shape.kind === "other") return [];
  if (shape.kind === "unknown") return ["fetch"];
  const known = shape.kind === "class" ? shape.names : shape.names.filter((name) => eventHandlers.has(name));
  return known.length === 0 && !shape.isComplete ? ["fetch"] : known;
}

function declaredNames(declaration: acorn.Declaration | undefined): string[] {
  if (declaration === undefined) return [];
  if (declaration.type !== "VariableDeclaration") return [declaration.id.name];
  return declaration.declarations.flatMap(({ id }) => (id.type === "Identifier" ? [id.name] : []));
}

const nameOf = (node: acorn.Identifier | acorn.Literal): string =>
  node.type === "Identifier" ? node.name : String(node.value);
