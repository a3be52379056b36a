import { extname } from "node:path";
import { isBuiltinName } from "../../../sandbox/process/worker-sources.ts";
import type { ApiMessage } from "../../../control/api/envelope.ts";
import type { ScriptCode } from "./code.ts";
import type { ModuleKind } from "../runtime-script.ts";
import { parseJson } from "../../../platform/util/json.ts";
import { readSourceMaps, sourceMapType } from "./source-maps.ts";
import type { StoredModule } from "./store-versions.ts";
import { scriptErrors } from "../errors.ts";

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
// Missing in the type library without DOM.
const wasm = (globalThis as unknown as { WebAssembly: { compile(bytes: Uint8Array): Promise<unknown> } })
  .WebAssembly;
const modulesMax = 1000;

/** Reads an upload whose entry is an ES module. */
export async function readModuleCode(
  files: readonly UploadedFile[],
  mainModule: string,
  messages: ApiMessage[],
): Promise<ScriptCode> {
  return withSourceMaps(mainModule, await readModules(files, mainModule), files, messages);
}

/** Reads an upload in the service worker format. */
export const readServiceWorkerCode = (
  files: readonly UploadedFile[],
  bodyPart: string,
  messages: ApiMessage[],
): ScriptCode => withSourceMaps(bodyPart, readServiceWorker(files, bodyPart), files, messages);

const withSourceMaps = (
  mainModule: string,
  modules: readonly StoredModule[],
  files: readonly UploadedFile[],
  messages: ApiMessage[],
): ScriptCode => ({
  mainModule,
  modules,
  sourceMaps: readSourceMaps(
    files.filter((file) => typeOf(file) === sourceMapType),
    modules,
    messages,
  ),
});

/** Decodes the modules of an upload. Source maps are not modules. */
async function readModules(files: readonly UploadedFile[], mainModule: string): Promise<StoredModule[]> {
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

/** The single file of a script in the service worker format (`addEventListener`). */
function readServiceWorker(files: readonly UploadedFile[], bodyPart: string): StoredModule[] {
  const file = files.find(({ name }) => name === bodyPart);
  if (file === undefined)
    throw scriptErrors.invalid(
      `Expected a part "${bodyPart}", which the metadata names as body_part, but received none`,
      "/metadata/body_part",
    );
  const [other] = files.filter((each) => each !== file && typeOf(each) !== sourceMapType);
  if (other !== undefined)
    throw scriptErrors.invalid(
      `A script with body_part has one file: "${other.name}" is not supported beside it`,
    );
  const type = typeOf(file) ?? "application/javascript";
  if (kindsByType[type] !== "cjs" && kindsByType[type] !== "data")
    throw scriptErrors.invalid(
      `Expected application/javascript for the part "${bodyPart}" but received ${type}: an ES module is named by main_module`,
    );
  if (!isModuleName(file.name))
    throw scriptErrors.invalid(
      `Expected the path of a module for a file name but received ${JSON.stringify(file.name)}`,
    );
  const content = decode(file.name, file.bytes);
  return [{ name: file.name, kind: "cjs", contentType: canonicalTypes.cjs, content }];
}

/** Names in the folder that the platform adds to scripts are reserved. */
const isModuleName = (name: string): boolean =>
  name.length <= moduleNameMax && !/\p{Cc}|(^|\/)__selvedge\//u.test(name) && !isBuiltinName(name);
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

/** The entry must be an ES module, even if a client labels it as plain JavaScript. */
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
  // Form libraries use this type for files without a type. Such a file counts as code.
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
  parseJson(content, (why) => scriptErrors.invalid(`Expected JSON in the module "${name}" but ${why}`));
}

async function checkWasm(name: string, bytes: Uint8Array): Promise<void> {
  try {
    await wasm.compile(bytes);
  } catch (error) {
    const offset = /@\+(\d+)/.exec(String(error))?.[1];
    const position = offset === undefined ? "" : ` at byte ${offset}`;
    throw scriptErrors.invalid(
      `Expected WebAssembly in the module "${name}" but it does not compile${position}`,
    );
  }
}
