import { posix } from "node:path";
import type { ApiMessage } from "../../../control/api/envelope.ts";
import type { ModuleMap } from "../../stack-traces/messages.ts";
import type { StoredModule } from "./store-versions.ts";

export const sourceMapType = "application/source-map";
/** The public API's limit is 15 MB compressed. */
const mapBytesMax = 32 * 1024 * 1024;

/** A comment in a module names its source map, relative to the module. */
const namePattern = /\/\/[#@] ?sourceMappingURL=([^\s'"`]{1,1024})/g;

/**
 * Finds the source maps of an upload and their modules. Maps without a module, and maps that are too large,
 * are dropped.
 */
export function readSourceMaps(
  files: readonly { name: string; bytes: Uint8Array }[],
  modules: readonly StoredModule[],
  messages: ApiMessage[],
): ModuleMap[] {
  if (files.length === 0) return [];
  const byName = new Map(files.map((file) => [posix.normalize(file.name), file]));
  const maps: ModuleMap[] = [];
  let bytes = 0;
  for (const module of modules) {
    const file = namesOf(module)
      .map((name) => byName.get(name))
      .find((each) => each !== undefined);
    if (file === undefined) continue;
    bytes += file.bytes.length;
    if (bytes <= mapBytesMax) maps.push({ module: module.name, content: file.bytes });
    else {
      bytes -= file.bytes.length;
      messages.push({
        code: 10021,
        message: `The source map ${JSON.stringify(file.name)} was dropped: all source maps of a script together may have at most ${mapBytesMax / 1024 / 1024} MiB`,
      });
    }
  }
  return maps;
}

/** Possible names of a module's source map. */
function namesOf({ name, kind, content }: StoredModule): string[] {
  if ((kind !== "js" && kind !== "cjs") || typeof content !== "string") return [];
  // Only the end of the module is searched.
  const named = [...content.slice(-2048).matchAll(namePattern)].at(-1)?.[1];
  const beside = `${posix.normalize(name)}.map`;
  return named === undefined
    ? [beside]
    : [posix.join(posix.dirname(name), named), posix.normalize(named), beside];
}
