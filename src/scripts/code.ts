import { createHash } from "node:crypto";
import { inspectCode } from "./inspection.ts";
import { scriptErrors, type VersionContent } from "./script.ts";
import type { StoredModule } from "./store-versions.ts";

/** The modules of a script; none where it has static files only. */
export interface Code {
  mainModule: string;
  modules: readonly StoredModule[];
}

export interface InspectedCode {
  modules: readonly StoredModule[];
  /** What a version says of its code. */
  facts: Pick<VersionContent, "mainModule" | "etag" | "handlers" | "namedHandlers">;
  /** Undefined where they cannot be told. */
  exportNames: ReadonlySet<string> | undefined;
}

/** Refuses code that cannot run, and says what is in it. */
export async function inspected({ mainModule, modules }: Code): Promise<InspectedCode> {
  const inspection =
    mainModule === ""
      ? { handlers: [], namedHandlers: [], exportNames: [] }
      : await inspectCode(modules, mainModule);
  if ("fault" in inspection) throw scriptErrors.invalid(inspection.fault);
  const { handlers, namedHandlers, exportNames } = inspection;
  return {
    modules,
    facts: { mainModule, etag: etagOf(modules), handlers, namedHandlers },
    exportNames: exportNames && new Set(exportNames),
  };
}

function etagOf(modules: readonly StoredModule[]): string {
  const hash = createHash("sha256");
  for (const { name, kind, content } of modules)
    hash.update(`${kind} ${name} ${content.length}\n`).update(content);
  return hash.digest("hex");
}
