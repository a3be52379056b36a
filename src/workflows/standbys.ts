import type { Core } from "./core.ts";

/** After something has been done: what is still under way has the machine's time first. */
const restMs = 5;
const standByMs = 10_000;
const standbysMax = 8;

/**
 * Segments that stand by, at most one for each version: already where they will run, so that the next instance only has
 * to begin. To bring one there costs the same as ever, but nobody waits for it.
 */
export class Standbys {
  readonly #core: Core;
  readonly #nextSegment: () => number;
  /** By version, the one that stands longest first. */
  readonly #standbys = new Map<number, { segment: number; cancel: () => void }>();
  #cancelRest = (): void => {};

  constructor(core: Core, nextSegment: () => number) {
    this.#core = core;
    this.#nextSegment = nextSegment;
    // What ran last is likely to run next.
    core.onSettled = ({ row }) => this.#addAfterRest(row.versionRid);
  }

  add(versionRid: number): void {
    // What there is to write goes to the disk first.
    this.#core.options.clock.soon(() => void this.#add(versionRid).catch(() => {})); // then nothing stands by
  }

  /** The segment that stands by for a version, to begin with. */
  take(versionRid: number): number | undefined {
    const standby = this.#standbys.get(versionRid);
    this.#standbys.delete(versionRid);
    standby?.cancel();
    return standby?.segment;
  }

  #addAfterRest(versionRid: number): void {
    const { writer, options } = this.#core;
    this.#cancelRest();
    this.#cancelRest = options.clock.after(restMs, () => {
      if (writer.isIdle) this.add(versionRid);
    });
  }

  async #add(versionRid: number): Promise<void> {
    const { options } = this.#core;
    const { clock, cells } = options;
    const { code } = await options.version(versionRid);
    const known = this.#standbys.get(versionRid);
    if (this.#core.isStopped || (known !== undefined && cells.standsBy(known.segment))) return;
    this.take(versionRid); // its cell has died
    const [longest] = this.#standbys.keys();
    if (longest !== undefined && this.#standbys.size >= standbysMax) this.#drop(longest);
    const segment = this.#nextSegment();
    const cancel = clock.after(standByMs, () => this.#drop(versionRid));
    this.#standbys.set(versionRid, { segment, cancel });
    cells.standBy(segment, code);
  }

  #drop(versionRid: number): void {
    const segment = this.take(versionRid);
    if (segment !== undefined) this.#core.options.cells.signal(segment, "abort");
  }
}
