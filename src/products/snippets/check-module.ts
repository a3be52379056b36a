import type { AnyNode, Expression, MethodDefinition, Program, Property } from "acorn";

/** A fault of a module. Lines and columns count from 1. */
export interface ModuleFault {
  message: string;
  line: number;
  column: number;
}

/** Additional requirements for the entry module. */
export interface ModuleRole {
  isMain: boolean;
}

/** Checks an uploaded module without running it. Undefined when it is valid. */
export async function checkModule(code: string, role: ModuleRole): Promise<ModuleFault | undefined> {
  const { parse } = await import("acorn");
  let program: Program;
  try {
    program = parse(code, { ecmaVersion: "latest", sourceType: "module", locations: true });
  } catch (error) {
    return syntaxFault(error);
  }
  return forbiddenPart(program) ?? (role.isMain ? entryFault(program) : undefined);
}

/** The message with its position, and the line with a mark below the position. */
export function moduleFaultText(code: string, { message, line, column }: ModuleFault): string {
  const text = code.split(/\r\n|[\r\n\u2028\u2029]/)[line - 1] ?? "";
  // Long lines are shown around the fault only.
  const start = Math.max(0, column - 1 - 60);
  const shown = text.slice(start, start + 120).replaceAll("\t", " ");
  return `line ${line}, column ${column}: ${message}\n${shown}\n${" ".repeat(column - 1 - start)}^`;
}

function syntaxFault(error: unknown): ModuleFault {
  const { loc, message } = error as { loc?: { line: number; column: number }; message: string };
  if (loc === undefined) throw error;
  const what = message.replace(/ \(\d+:\d+\)$/, "");
  return { message: `SyntaxError: ${what}`, line: loc.line, column: loc.column + 1 };
}

const noImport = "a snippet cannot load other modules";

/** The first forbidden construct, in order of the text. */
function forbiddenPart(program: Program): ModuleFault | undefined {
  const open: unknown[] = [program];
  while (open.length > 0) {
    const node = open.pop();
    if (Array.isArray(node)) {
      for (let i = node.length - 1; i >= 0; i--) open.push(node[i]);
      continue;
    }
    if (!isNode(node)) continue;
    const what = forbidden(node);
    if (what !== undefined) return at(node, what);
    const children = Object.values(node).filter((value) => typeof value === "object" && value !== null);
    for (let i = children.length - 1; i >= 0; i--) open.push(children[i]);
  }
  return undefined;
}

function forbidden(node: AnyNode): string | undefined {
  switch (node.type) {
    case "ImportDeclaration":
      return `import is not available: ${noImport}`;
    case "ImportExpression":
      return `import() is not available: ${noImport}`;
    case "ExportAllDeclaration":
      return `export … from is not available: ${noImport}`;
    case "ExportNamedDeclaration":
      return node.source ? `export … from is not available: ${noImport}` : undefined;
    case "CallExpression":
      return isListening(node.callee)
        ? "addEventListener is not available: export default { async fetch(request) { … } } instead"
        : undefined;
    default:
      return undefined;
  }
}

/** `addEventListener(…)`, also through the global object. Methods of other objects are allowed. */
function isListening(callee: AnyNode): boolean {
  if (callee.type === "Identifier") return callee.name === "addEventListener";
  return (
    callee.type === "MemberExpression" &&
    callee.object.type === "Identifier" &&
    ["self", "globalThis"].includes(callee.object.name) &&
    nameOf(callee.property, callee.computed) === "addEventListener"
  );
}

const wanted = "expected export default { async fetch(request) { … } }";

function entryFault(program: Program): ModuleFault | undefined {
  for (const statement of program.body) {
    if (statement.type === "ExportDefaultDeclaration")
      return handlerFault(statement.declaration, program, statement);
    if (statement.type !== "ExportNamedDeclaration") continue;
    for (const { exported, local } of statement.specifiers) {
      if (nameOf(exported) === "default" && local.type === "Identifier")
        return handlerFault(local, program, statement);
    }
  }
  return { message: `the module has no default export: ${wanted}`, line: 1, column: 1 };
}

/**
 * Detects a default export that is certainly not an object with a `fetch` method. Cases that only running can
 * decide (such as the result of a call) are accepted.
 */
function handlerFault(value: AnyNode, program: Program, node: AnyNode): ModuleFault | undefined {
  const resolved = value.type === "Identifier" ? definitionOf(value.name, program) : value;
  switch (resolved?.type) {
    case "ObjectExpression":
      return methodFault(resolved.properties, node);
    case "FunctionDeclaration":
    case "FunctionExpression":
    case "ArrowFunctionExpression":
      return at(node, `the default export is a function, ${wanted}`);
    case "ClassDeclaration":
    case "ClassExpression":
      return at(node, `the default export is a class, ${wanted}`);
    case "Literal":
    case "TemplateLiteral":
    case "ArrayExpression":
      return at(node, `the default export is not an object with a fetch method, ${wanted}`);
    default:
      return undefined;
  }
}

type ObjectPart = Extract<AnyNode, { type: "ObjectExpression" }>["properties"][number];

function methodFault(properties: readonly ObjectPart[], node: AnyNode): ModuleFault | undefined {
  for (const property of properties.toReversed()) {
    if (property.type === "SpreadElement") return undefined; // may add the method
    const name = keyOf(property);
    if (name === undefined) return undefined;
    if (name !== "fetch") continue;
    const isData = ["Literal", "TemplateLiteral", "ObjectExpression", "ArrayExpression"].includes(
      property.value.type,
    );
    return isData ? at(property, `fetch is not a function, ${wanted}`) : undefined;
  }
  return at(node, `the default export has no fetch method, ${wanted}`);
}

/** The definition of a name in the module that is never reassigned. */
function definitionOf(name: string, program: Program): AnyNode | undefined {
  for (const statement of program.body) {
    const declaration =
      statement.type === "ExportNamedDeclaration" ? statement.declaration : (statement as AnyNode);
    if (declaration?.type === "FunctionDeclaration" || declaration?.type === "ClassDeclaration") {
      if (declaration.id?.name === name) return declaration;
    }
    if (declaration?.type !== "VariableDeclaration" || declaration.kind !== "const") continue;
    for (const { id, init } of declaration.declarations) {
      if (id.type === "Identifier" && id.name === name) return init ?? undefined;
    }
  }
  return undefined;
}

const keyOf = (property: Property | MethodDefinition): string | undefined =>
  nameOf(property.key, property.computed);

function nameOf(node: AnyNode | Expression, isComputed = false): string | undefined {
  if (node.type === "Identifier") return isComputed ? undefined : node.name;
  return node.type === "Literal" && typeof node.value === "string" ? node.value : undefined;
}

const isNode = (value: unknown): value is AnyNode =>
  typeof value === "object" && value !== null && typeof (value as { type?: unknown }).type === "string";

const at = (node: AnyNode, message: string): ModuleFault => ({
  message,
  line: node.loc!.start.line,
  column: node.loc!.start.column + 1,
});
