import { ScriptNotFound } from "../../../workers/runtime/errors.ts";
import type { Runtime } from "../../../workers/runtime/runtime.ts";
import type { Scripts } from "../../../workers/scripts/scripts.ts";
import type { WorkflowCode } from "./invocation-runner.ts";
import { requestsWhile } from "./request-guard.ts";
import type { Prepared } from "./workflow-cells.ts";

/** Limits of one invocation. They equal those of the public service. */
const limits = { cpuMs: 30_000, subRequests: 10_000 };

/**
 * The growth limit of an instance's cell: its V8 heap, its buffers, and those of its neighbours, in bytes.
 */
const memoryBytesMax = 1024 ** 3;

/** Finds the code that an instance was created with; undefined when it has been deleted. */
export const workflowCode =
  (scripts: Pick<Scripts, "find">, runtime: Pick<Runtime, "prepare">) =>
  async ({ accountId, scriptName, scriptVersion }: WorkflowCode): Promise<Prepared | undefined> => {
    const script = scripts.find({ accountId }, scriptName);
    if (script === undefined) return undefined;
    try {
      const live = { scriptId: script.id, accountId, name: scriptName, versionId: scriptVersion };
      const prepared = await runtime.prepare(live, limits);
      return {
        ...prepared,
        script: { ...prepared.script, hasWorkflows: true, memoryBytes: memoryBytesMax },
        isThere: () => scripts.find({ accountId }, scriptName)?.id === script.id,
      };
    } catch (error) {
      if (error instanceof ScriptNotFound) return undefined;
      throw error;
    }
  };

/**
 * A node whose leases may have expired sends no requests of its instances, since another node may have
 * repeated them.
 */
export const whileCurrent = (prepared: Prepared, isCurrent: () => boolean): Prepared => ({
  ...prepared,
  hooks: (trace, traced) => requestsWhile(isCurrent, prepared.hooks(trace, traced)),
});
