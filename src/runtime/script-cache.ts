import { LRUCache } from "lru-cache";
import type { RunHooks } from "../cells/front-server.ts";
import type { CellScript } from "../cells/script.ts";
import type { RuntimeScript } from "../scripts/runtime-script.ts";
import { madeBindings, plainEnv } from "./bindings.ts";

/** A version of a script, ready to be given to a cell. */
export interface LoadedScript {
  script: RuntimeScript;
  cell: Omit<CellScript, "cpuMs" | "memoryBytes">;
  /** Whether it has a binding to a dispatch namespace. */
  dispatches: boolean;
  /** The least CPU time that it has given a customer. */
  customersCpuMs: number;
  /** A run of it that goes on after its answer, having asked for nothing before; by how many subrequests it has. */
  late: Map<number, () => RunHooks>;
}

const entryBytes = 2048;

/** Versions that were used lately, with their code: they never change. */
export class ScriptCache {
  readonly #scripts: LRUCache<string, LoadedScript>;
  readonly #loading = new Map<string, Promise<LoadedScript | undefined>>();

  constructor(bytesMax: number) {
    this.#scripts = new LRUCache({
      maxSize: bytesMax,
      sizeCalculation: ({ script }) =>
        script.modules.reduce((sum, { content }) => sum + content.length, entryBytes),
    });
  }

  /** Loads a version once, however many ask for it at a time. */
  async get(
    versionId: string,
    load: () => Promise<RuntimeScript | undefined>,
  ): Promise<LoadedScript | undefined> {
    const known = this.#scripts.get(versionId);
    if (known !== undefined) return known;
    let loading = this.#loading.get(versionId);
    if (loading === undefined) {
      loading = this.#load(versionId, load).finally(() => this.#loading.delete(versionId));
      this.#loading.set(versionId, loading);
    }
    return loading;
  }

  async #load(
    versionId: string,
    load: () => Promise<RuntimeScript | undefined>,
  ): Promise<LoadedScript | undefined> {
    const script = await load();
    if (script === undefined) return undefined;
    const loaded: LoadedScript = {
      script,
      cell: cellOf(script),
      dispatches: script.bindings.some(({ type }) => type === "dispatch_namespace"),
      customersCpuMs: Infinity,
      late: new Map(),
    };
    this.#scripts.set(versionId, loaded);
    return loaded;
  }
}

/** What a cell is given of a version. */
export const cellOf = (script: RuntimeScript): LoadedScript["cell"] => ({
  id: script.id,
  owner: `script ${script.accountId}/${script.namespace ?? ""}/${script.name}`,
  profile: "script",
  mainModule: script.mainModule,
  modules: script.modules,
  compatibilityDate: script.compatibilityDate,
  compatibilityFlags: script.compatibilityFlags,
  env: plainEnv(script),
  bindings: madeBindings(script),
  classNames: script.namedHandlers.map(({ name }) => name),
  isDispatched: script.namespace !== undefined,
});
