import { RefusedError, type EngineState, type RunnableVersion } from "./engine-state.ts";
import { History } from "../store/journal.ts";
import type { LiveInstance } from "./live-instance.ts";
import { StandbyInvocations } from "./standby-invocations.ts";
import { FencedError } from "../store/writer.ts";
import { unawaited } from "../../../platform/util/uncaught.ts";

/** Starts invocations of instances that have got a slot. */
export class InvocationStarter {
  readonly standbys: StandbyInvocations;
  readonly #state: EngineState;
  #invocation: number;

  constructor(state: EngineState) {
    this.#state = state;
    // Numbers must differ from those of an earlier process.
    this.#invocation = state.now * 1024;
    this.standbys = new StandbyInvocations(state, () => ++this.#invocation);
  }

  async dispatch(rid: number): Promise<void> {
    const state = this.#state;
    if (state.isStopped) return;
    try {
      await state.with(rid, async (instance) => this.#start(instance));
    } catch (error) {
      if (error instanceof RefusedError || error instanceof FencedError) return;
      state.options.onFault(error, "a workflow instance could not be started");
      state.options.clock.after(1000, () => {
        unawaited(this.dispatch(rid));
      });
    }
  }

  async #start(instance: LiveInstance): Promise<void> {
    const state = this.#state;
    const { row } = instance;
    let version: RunnableVersion | undefined;
    do {
      await instance.restarting;
      version = await state.options.version(row.versionRid);
      // The workflow was deleted and its instance was overlooked: there is no code to run.
      if (version === undefined) return state.remove(row.shard, [row.rid]);
      await this.#complete(instance);
      // The instance may have restarted in the meantime.
    } while (instance.restarting !== undefined || version.rid !== row.versionRid);
    if (!state.isCurrent() || row.status !== "queued" || instance.isLost || state.isStopped) return;
    state.move(instance, "slot");
    state.saveLater(instance);
    const number = this.#run(instance, version);
    instance.invocation = { number, pending: new Map(), stepsMax: version.stepsMax };
    state.invocations.set(number, instance);
  }

  #run(instance: LiveInstance, version: RunnableVersion): number {
    const { cells, limits } = this.#state.options;
    const start = instance.startMessage(version.workflowName, limits, this.#state.now);
    instance.history.forgetValues();
    const isAlone = instance.row.crashes > 0;
    const standby = isAlone ? undefined : this.standbys.take(version.rid);
    if (standby !== undefined && cells.begin(standby, start)) return standby;
    const number = ++this.#invocation;
    cells.run(number, version.code, start, isAlone ? "alone" : "shared");
    return number;
  }

  /** Reloads results that were dropped from memory while the instance ran. */
  async #complete(instance: LiveInstance): Promise<void> {
    const { writer, options } = this.#state;
    while (instance.history.isPartial) {
      const { history } = instance;
      const { size } = history;
      await writer.drain();
      const rows = await options.store.journal(instance.rid, instance.row.run);
      if (instance.history === history && history.size === size) instance.history = new History(rows);
    }
  }
}
