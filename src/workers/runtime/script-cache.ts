import { LRUCache } from "lru-cache";
import type { RunHooks } from "../../sandbox/gateway/gateway-server.ts";
import type { CellScript } from "../../sandbox/process/script.ts";
import type { RuntimeScript } from "../scripts/runtime-script.ts";
import { LoadingCache } from "../../platform/util/loading-cache.ts";
import { madeBindings, plainEnv } from "./bindings.ts";

/** A version of a script, ready for a cell. */
export interface LoadedScript {
  script: RuntimeScript;
  cell: Omit<CellScript, "cpuMs" | "memoryBytes">;
  /** Whether it has a binding to a dispatch namespace. */
  dispatches: boolean;
  /** The smallest CPU limit that it has set for a customer. */
  customersCpuMs: number;
  /** Hooks for work after the answer, for runs that have made no request yet; by number of subrequests. */
  late: Map<number, () => RunHooks>;
}

const entryBytes = 2048;

/** Recently used versions with their code. A version never changes. */
export class ScriptCache {
  readonly #scripts: LoadingCache<string, LoadedScript>;

  constructor(bytesMax: number) {
    this.#scripts = new LoadingCache<string, LoadedScript>(
      new LRUCache({
        maxSize: bytesMax,
        sizeCalculation: ({ script }) =>
          script.modules.reduce((sum, { content }) => sum + content.length, entryBytes),
      }),
    );
  }

  /** Loads a version once for all concurrent callers. */
  async get(key: string, load: () => Promise<RuntimeScript | undefined>): Promise<LoadedScript | undefined> {
    return this.#scripts.get(key, async () => {
      const script = await load();
      return script && loadedOf(script);
    });
  }

  /** Drops the versions of a deleted script, with their secrets. */
  forget(scriptId: string): void {
    this.#scripts.forget(({ script }) => script.scriptId === scriptId);
  }
}

const loadedOf = (script: RuntimeScript): LoadedScript => ({
  script,
  cell: cellOf(script),
  dispatches: script.bindings.some(({ type }) => type === "dispatch_namespace"),
  customersCpuMs: Infinity,
  late: new Map(),
});

/** A version in the form for a cell. */
export const cellOf = (script: RuntimeScript): LoadedScript["cell"] => ({
  id: script.id,
  // Includes the id, so that a script does not inherit the quarantine of a deleted one with its name.
  owner: `script ${script.accountId}/${script.namespace ?? ""}/${script.name} ${script.scriptId}`,
  accountId: script.accountId,
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
