import { ScriptNotFound } from "../runtime/errors.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { Scripts } from "../scripts/scripts.ts";
import type { Code } from "./cells.ts";
import type { Prepared } from "./lane-cells.ts";

/** Of one invocation, from where an instance goes on to where it waits; the public service allows as much. */
const limits = { cpuMs: 30_000, subRequests: 10_000 };

/** What the cell of an instance may grow by: its heap, which V8 limits, its buffers, and those of its neighbours. */
const memoryBytesMax = 1024 ** 3;

/** Finds the code that an instance began with; undefined when it is gone. */
export const workflowCode =
  (scripts: Pick<Scripts, "find">, runtime: Pick<Runtime, "prepare">) =>
  async ({ accountId, scriptName, scriptVersion }: Code): Promise<Prepared | undefined> => {
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

/** A node that stood still lets nothing out that its code asks for: another node may have done it. */
export const whileCurrent = (prepared: Prepared, isCurrent: () => boolean): Prepared => ({
  ...prepared,
  hooks(trace) {
    const run = prepared.hooks(trace);
    return {
      fetch(url, request, response) {
        if (isCurrent()) run.fetch(url, request, response);
        else response.destroy();
      },
      upgrade(url, request, socket, head) {
        if (isCurrent() && run.upgrade !== undefined) run.upgrade(url, request, socket, head);
        else socket.destroy();
      },
      answered: () => run.answered?.(),
      ...(run.nested === undefined ? {} : { nested: async (binding) => run.nested!(binding) }),
      ...(run.dispatch === undefined
        ? {}
        : { dispatch: async (binding, said, outbound) => run.dispatch!(binding, said, outbound) }),
      ...(run.child === undefined ? {} : { child: async (child) => run.child!(child) }),
    };
  },
});
