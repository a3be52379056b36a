import { createHash } from "node:crypto";
import { inspectCode } from "./inspection.ts";
import type { VersionContent } from "../script.ts";
import type { ModuleMap } from "../../stack-traces/messages.ts";
import type { StoredModule } from "./store-versions.ts";
import { scriptErrors } from "../errors.ts";

/** The modules of a script; empty for static assets only. */
export interface ScriptCode {
  mainModule: string;
  modules: readonly StoredModule[];
  sourceMaps: readonly ModuleMap[];
}

export interface InspectedCode {
  modules: readonly StoredModule[];
  sourceMaps: readonly ModuleMap[];
  /** Properties of the code that are stored with the version. */
  inspected: Pick<VersionContent, "mainModule" | "etag" | "handlers" | "namedHandlers" | "hasSourceMaps">;
  /** Undefined if the source does not show them. */
  exportNames: ReadonlySet<string> | undefined;
}

/** Throws if the code cannot run; otherwise returns its properties. */
export async function inspected(
  account: string,
  { mainModule, modules, sourceMaps }: ScriptCode,
): Promise<InspectedCode> {
  const inspection =
    mainModule === ""
      ? { handlers: [], namedHandlers: [], exportNames: [] }
      : await inspectCode(account, modules, mainModule);
  if ("fault" in inspection) throw scriptErrors.invalid(inspection.fault);
  const { handlers, namedHandlers, exportNames } = inspection;
  return {
    modules,
    sourceMaps,
    inspected: {
      mainModule,
      etag: etagOf(modules),
      handlers,
      namedHandlers,
      hasSourceMaps: sourceMaps.length > 0,
    },
    exportNames: exportNames && new Set(exportNames),
  };
}

function etagOf(modules: readonly StoredModule[]): string {
  const hash = createHash("sha256");
  for (const { name, kind, content } of modules)
    hash.update(`${kind} ${name} ${content.length}\n`).update(content);
  return hash.digest("hex");
}
