import { RefusedError, type Core, type Version } from "./core.ts";
import { History } from "./journal.ts";
import type { LiveInstance } from "./live-instance.ts";
import { FencedError } from "./writer.ts";

/** After an end: what is under way has the machine's time first. */
const restMs = 5;
const standByMs = 10_000;
const standbysMax = 8;

/** Starts segments of instances that have got a slot. */
export class Starts {
  readonly #core: Core;
  /** Segments that stand by, by the version that they are for. */
  readonly #standbys = new Map<number, { segment: number; cancel: () => void }>();
  #segment: number;
  #cancelRest = (): void => {};

  constructor(core: Core) {
    this.#core = core;
    // Numbers of an earlier process must mean nothing to this one.
    this.#segment = core.now * 1024;
    core.onSettled = ({ row }) => this.#standBySoon(row.versionRid);
  }

  /**
   * Has a segment of a version stand by for the next instance that begins. That costs as much as any beginning, but
   * here nobody waits for it: it is done while the disk works, or when nothing else is to be done.
   */
  standBy(versionRid: number): void {
    // What there is to write comes first.
    this.#core.options.clock.soon(() => void this.#standBy(versionRid).catch(() => {})); // then nothing stands by
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

  /** What ran last is likely to run next. */
  #standBySoon(versionRid: number): void {
    const { writer, options } = this.#core;
    this.#cancelRest();
    this.#cancelRest = options.clock.after(restMs, () => {
      if (writer.isIdle) this.standBy(versionRid);
    });
  }

  async #standBy(versionRid: number): Promise<void> {
    const { options } = this.#core;
    const { code } = await options.version(versionRid);
    if (this.#standbys.has(versionRid) || this.#core.isStopped) return;
    const [longest] = this.#standbys.keys();
    if (longest !== undefined && this.#standbys.size >= standbysMax) this.#forget(longest);
    const segment = ++this.#segment;
    const cancel = options.clock.after(standByMs, () => this.#forget(versionRid));
    this.#standbys.set(versionRid, { segment, cancel });
    options.cells.standBy(segment, code);
  }

  #forget(versionRid: number): void {
    const segment = this.#take(versionRid);
    if (segment !== undefined) this.#core.options.cells.signal(segment, "abort");
  }

  #take(versionRid: number): number | undefined {
    const standby = this.#standbys.get(versionRid);
    this.#standbys.delete(versionRid);
    standby?.cancel();
    return standby?.segment;
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
    const standby = isAlone ? undefined : this.#take(version.rid);
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
