import { LRUCache } from "lru-cache";
import type { RunHooks } from "../../sandbox/gateway/run-hooks.ts";
import { idInCells, type CellScript } from "../../sandbox/process/script.ts";
import { ownerInCells, type RuntimeScript } from "../scripts/runtime-script.ts";
import { LoadingCache } from "../../platform/util/loading-cache.ts";
import type { Caller } from "../binding.ts";
import type { BindingRegistry } from "../binding-registry.ts";
import type { BindingTypeName } from "../bindings.ts";
import { madeBindings, plainEnv } from "../binding-environment.ts";
import type { RunLimits } from "./run-context.ts";
import type { RuntimeLimits } from "./runtime-options.ts";

/** A version of a script, ready for a cell. */
export interface LoadedScript {
  script: RuntimeScript;
  caller: Caller;
  /** The strictest limits of the installation and the script. */
  limits: RunLimits;
  cell: CellScript;
  /**
   * For a script with a binding to a dispatch namespace: its form for cells in which the customers' scripts
   * run as well. The script and its customers have one owner. The CPU limit is the smallest one of all dispatches so far.
   */
  group: CellScript | undefined;
  /** Whether it may run in the cell of its objects: it calls objects, belongs to its account, and does not dispatch. */
  mayBeNear: boolean;
  /** Hooks for work after the answer, for runs that have made no request yet; by number of subrequests. */
  late: Map<number, () => RunHooks>;
}

const entryBytes = 2048;

/** Recently used versions with their code. A version never changes. */
export class ScriptCache {
  readonly #scripts: LoadingCache<string, LoadedScript>;
  readonly #limits: RuntimeLimits;
  readonly #bindings: BindingRegistry;

  constructor(limits: RuntimeLimits, bindings: BindingRegistry) {
    this.#limits = limits;
    this.#bindings = bindings;
    this.#scripts = new LoadingCache<string, LoadedScript>(
      new LRUCache({
        maxSize: limits.cacheBytes,
        sizeCalculation: ({ script }) =>
          script.modules.reduce((sum, { content }) => sum + content.length, entryBytes),
      }),
    );
  }

  /** Returns a version at once if it is cached. */
  peek(key: string): LoadedScript | undefined {
    return this.#scripts.peek(key);
  }

  /** Loads a version once for all concurrent callers. */
  async get(key: string, load: () => Promise<RuntimeScript | undefined>): Promise<LoadedScript | undefined> {
    return this.#scripts.get(key, async () => {
      const script = await load();
      return script && loadedOf(script, this.#limits, this.#bindings);
    });
  }

  forgetAll(): void {
    this.#scripts.forget();
  }

  /** Drops the versions of a deleted script, with their secrets. */
  forget(scriptId: string): void {
    this.#scripts.forget(({ script }) => script.scriptId === scriptId);
  }
}

/** A version, ready for a cell, with the limits of the installation. */
export function loadedOf(
  script: RuntimeScript,
  installation: RunLimits & Pick<RuntimeLimits, "memoryBytes">,
  bindings: BindingRegistry,
): LoadedScript {
  const { accountId, scriptId, name: scriptName, id: versionId } = script;
  const limits = strictest(installation, script.limits);
  const cell = {
    ...cellOf(script, bindings),
    cpuMs: limits.cpuMs,
    memoryBytes: installation.memoryBytes,
  };
  const has = (wanted: BindingTypeName): boolean => script.bindings.some(({ type }) => type === wanted);
  const dispatches = has("dispatch_namespace");
  return {
    script,
    caller: { accountId, scriptId, scriptName, versionId },
    limits,
    cell,
    group: dispatches ? { ...cell, owner: `${cell.owner} and those it dispatches to` } : undefined,
    mayBeNear: !dispatches && script.namespace === undefined && has("durable_object_namespace"),
    late: new Map(),
  };
}

/** The smaller one of each limit. */
export const strictest = (a: RunLimits, b: Partial<RunLimits> = {}): RunLimits => ({
  cpuMs: Math.min(a.cpuMs, b.cpuMs ?? Infinity),
  subRequests: Math.min(a.subRequests, b.subRequests ?? Infinity),
});

/** A script with another CPU limit. */
export const withCpuLimit = (script: CellScript, cpuMs: number): CellScript =>
  script.cpuMs === cpuMs ? script : { ...script, cpuMs };

/** A version in the form for a cell. */
export const cellOf = (
  script: RuntimeScript,
  bindings: BindingRegistry,
): Omit<CellScript, "cpuMs" | "memoryBytes"> => ({
  id: idInCells(script.id),
  owner: ownerInCells(script),
  accountId: script.accountId,
  profile: "script",
  mainModule: script.mainModule,
  modules: script.modules,
  compatibilityDate: script.compatibilityDate,
  compatibilityFlags: script.compatibilityFlags,
  env: plainEnv(script, bindings),
  bindings: madeBindings(script, bindings),
  classNames: script.namedHandlers
    .map(({ name }) => name)
    .filter((name) => script.objectClasses?.includes(name) !== true),
  objectClasses: script.objectClasses ?? [],
  isDispatched: script.namespace !== undefined,
});
