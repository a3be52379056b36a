import { RefusedError, type Core, type Version } from "./core.ts";
import { History } from "./journal.ts";
import type { LiveInstance } from "./live-instance.ts";
import { Standbys } from "./standbys.ts";
import { FencedError } from "./writer.ts";

/** Starts segments of instances that have got a slot. */
export class Starts {
  readonly standbys: Standbys;
  readonly #core: Core;
  #segment: number;

  constructor(core: Core) {
    this.#core = core;
    // Numbers of an earlier process must mean nothing to this one.
    this.#segment = core.now * 1024;
    this.standbys = new Standbys(core, () => ++this.#segment);
  }

  async dispatch(rid: number): Promise<void> {
    const core = this.#core;
    if (core.isStopped) return;
    try {
      await core.with(rid, async (instance) => this.#start(instance));
    } catch (error) {
      if (error instanceof RefusedError || error instanceof FencedError) return;
      core.options.onFault(error, "an instance could not be started");
      core.options.clock.after(1000, () => void this.dispatch(rid));
    }
  }

  async #start(instance: LiveInstance): Promise<void> {
    const core = this.#core;
    const { row } = instance;
    let version: Version;
    do {
      await instance.restarting;
      version = await core.options.version(row.versionRid);
      await this.#complete(instance);
      // It may have been restarted meanwhile.
    } while (instance.restarting !== undefined || version.rid !== row.versionRid);
    if (!core.isCurrent() || row.status !== "queued" || instance.isLost || core.isStopped) return;
    core.move(instance, "slot");
    core.saveLater(instance);
    const number = this.#run(instance, version);
    instance.segment = { number, pending: new Map(), stepsMax: version.stepsMax };
    core.segments.set(number, instance);
  }

  #run(instance: LiveInstance, version: Version): number {
    const { cells, limits } = this.#core.options;
    const start = instance.startMessage(version.workflowName, limits, this.#core.now);
    instance.history.forgetValues();
    const isAlone = instance.row.crashes > 0;
    const standby = isAlone ? undefined : this.standbys.take(version.rid);
    if (standby !== undefined && cells.begin(standby, start)) return standby;
    const number = ++this.#segment;
    cells.run(number, version.code, start, isAlone ? "alone" : "shared");
    return number;
  }

  /** Brings results back into memory that were left out while the instance ran. */
  async #complete(instance: LiveInstance): Promise<void> {
    const { writer, options } = this.#core;
    while (instance.history.isPartial) {
      const { history } = instance;
      const { size } = history;
      await writer.drain();
      const rows = await options.store.journal(instance.rid, instance.row.run);
      if (instance.history === history && history.size === size) instance.history = new History(rows);
    }
  }
}
