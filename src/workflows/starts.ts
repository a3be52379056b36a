import { RefusedError, type Core, type Version } from "./core.ts";
import type { Manner } from "./cells.ts";
import type { NewInstance } from "./instance.ts";
import { History } from "./journal.ts";
import { LiveInstance } from "./live-instance.ts";
import { FencedError } from "./writer.ts";

/** Starts segments: of instances that have got a slot, and ahead of what will get one at once. */
export class Starts {
  readonly #core: Core;
  #segment: number;

  constructor(core: Core) {
    this.#core = core;
    // Numbers of an earlier process must mean nothing to this one.
    this.#segment = core.now * 1024;
  }

  /**
   * Brings the first segment of an instance to where it will run, while the instance is made durable: its code runs
   * only when it is. Undefined where that would take time from others, or could not be of use.
   */
  ahead(instance: NewInstance): Promise<number | undefined> | undefined {
    const { scheduler, writer } = this.#core;
    if (!writer.isIdle || !scheduler.hasRoom(instance.accountId)) return undefined;
    return this.#ahead(instance).catch(() => undefined); // then it starts as others do, and says what is wrong
  }

  /** Takes back what was sent ahead, when it is not wanted. */
  drop(ahead: Promise<number | undefined> | undefined): void {
    const { cells } = this.#core.options;
    void ahead?.then((segment) => segment !== undefined && cells.signal(segment, "abort"));
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

  async #ahead(instance: NewInstance): Promise<number> {
    const version = await this.#core.options.version(instance.versionRid);
    const number = ++this.#segment;
    this.#run(number, new LiveInstance({ ...instance, rid: 0 }, [], []), version, "ahead");
    return number;
  }

  async #start(instance: LiveInstance): Promise<void> {
    const core = this.#core;
    const { row, ahead } = instance;
    instance.ahead = undefined;
    let begun: number | undefined;
    try {
      const sent = await ahead;
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
      if (sent !== undefined && row.run === 1 && core.options.cells.begin(sent)) begun = sent;
      const number = begun ?? ++this.#segment;
      instance.segment = { number, pending: new Map(), stepsMax: version.stepsMax };
      core.segments.set(number, instance);
      if (begun === undefined) this.#run(number, instance, version, row.crashes > 0 ? "alone" : "shared");
    } finally {
      if (begun === undefined) this.drop(ahead);
    }
  }

  #run(number: number, instance: LiveInstance, version: Version, manner: Manner): void {
    const { cells, limits } = this.#core.options;
    const { now } = this.#core;
    const start = instance.startMessage(version.workflowName, limits, { now, isAhead: manner === "ahead" });
    instance.history.forgetValues();
    cells.run(number, version.code, start, manner);
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
