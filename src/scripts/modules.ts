import { extname } from "node:path";
import type { ModuleKind } from "./runtime-script.ts";
import { scriptErrors } from "./script.ts";
import type { StoredModule } from "./store-versions.ts";

export interface UploadedFile {
  name: string;
  contentType: string | undefined;
  bytes: Uint8Array;
}

const kindsByType: Record<string, ModuleKind> = {
  "application/javascript+module": "js",
  "text/javascript+module": "js",
  "application/javascript": "cjs",
  "text/javascript": "cjs",
  "application/wasm": "wasm",
  "text/plain": "text",
  "text/html": "text",
  "application/json": "json",
  "application/octet-stream": "data",
};
const kindsByExtension: Record<string, ModuleKind> = {
  ".js": "js",
  ".mjs": "js",
  ".cjs": "cjs",
  ".wasm": "wasm",
  ".json": "json",
  ".txt": "text",
  ".html": "text",
};
const canonicalTypes: Record<ModuleKind, string> = {
  js: "application/javascript+module",
  cjs: "application/javascript",
  text: "text/plain",
  data: "application/octet-stream",
  json: "application/json",
  wasm: "application/wasm",
};
// Node has it; the type library without a DOM does not.
const wasm = (globalThis as unknown as { WebAssembly: { compile(bytes: Uint8Array): Promise<unknown> } })
  .WebAssembly;
const sourceMapType = "application/source-map";
const modulesMax = 1000;

/** The modules of an upload, each of its kind and decoded. Source maps are for debuggers and left out. */
export async function readModules(
  files: readonly UploadedFile[],
  mainModule: string,
): Promise<StoredModule[]> {
  const modules: StoredModule[] = [];
  const names = new Set<string>();
  for (const file of files) {
    if (typeOf(file) === sourceMapType) continue;
    if (!isModuleName(file.name))
      throw scriptErrors.invalid(
        `Expected the path of a module for a file name but received ${JSON.stringify(file.name)}`,
      );
    if (names.has(file.name)) throw scriptErrors.invalid(`Two modules have the name "${file.name}"`);
    names.add(file.name);
    modules.push(await readModule(file, file.name === mainModule));
  }
  if (modules.length > modulesMax)
    throw scriptErrors.invalid(`Expected at most ${modulesMax} modules but received ${modules.length}`);
  return modules;
}

/** What the platform loads beside a script lies in a folder of its own. */
const isModuleName = (name: string): boolean =>
  name.length <= moduleNameMax && !/\p{Cc}|(^|\/)__selvedge\//u.test(name);
const moduleNameMax = 1024;

const typeOf = ({ contentType }: UploadedFile): string | undefined =>
  contentType?.split(";", 1)[0]!.trim().toLowerCase();

async function readModule(file: UploadedFile, isMain: boolean): Promise<StoredModule> {
  const { name, bytes } = file;
  const kind = isMain ? mainKind(file) : kindOf(file);
  const contentType = canonicalTypes[kind];
  if (kind === "data") return { name, kind, contentType, content: bytes };
  if (kind === "wasm") {
    await checkWasm(name, bytes);
    return { name, kind, contentType, content: bytes };
  }
  const content = decode(name, bytes);
  if (kind === "json") checkJson(name, content);
  return { name, kind, contentType, content };
}

/** The entry must be an ES module, so a client that labels it as plain JavaScript means one. */
function mainKind(file: UploadedFile): ModuleKind {
  const kind = kindOf(file);
  if (kind === "js" || kind === "cjs") return "js";
  throw scriptErrors.invalid(
    `Expected an ES module (application/javascript+module) for the main module "${file.name}" but received ${typeOf(file) ?? "no content type"}`,
  );
}

function kindOf(file: UploadedFile): ModuleKind {
  const type = typeOf(file);
  const byExtension = kindsByExtension[extname(file.name).toLowerCase()];
  if (type === undefined) return byExtension ?? "data";
  // What form libraries write for a file of no type. Code is meant as code.
  if (
    type === "application/octet-stream" &&
    byExtension !== undefined &&
    byExtension !== "json" &&
    byExtension !== "text"
  )
    return byExtension;
  const kind = kindsByType[type];
  if (kind === undefined) {
    throw scriptErrors.invalid(
      `The module "${file.name}" has the content type ${type}, which is not supported here. Expected one of ${Object.keys(kindsByType).join(", ")}, ${sourceMapType}`,
    );
  }
  return kind === "cjs" && byExtension === "js" && file.name.toLowerCase().endsWith(".mjs") ? "js" : kind;
}

function decode(name: string, bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw scriptErrors.invalid(`Expected UTF-8 in the module "${name}"`);
  }
}

function checkJson(name: string, content: string): void {
  try {
    JSON.parse(content);
  } catch (error) {
    throw scriptErrors.invalid(`Expected JSON in the module "${name}": ${(error as Error).message}`);
  }
}

async function checkWasm(name: string, bytes: Uint8Array): Promise<void> {
  try {
    await wasm.compile(bytes);
  } catch (error) {
    throw scriptErrors.invalid(`Expected WebAssembly in the module "${name}": ${(error as Error).message}`);
  }
}
