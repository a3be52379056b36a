import type { EngineState } from "./engine-state.ts";

/** Time after a commit before standby code loads, so that running work goes first. */
const restMs = 5;
const standByMs = 10_000;
const standbysMax = 8;

/**
 * Standby invocations, at most one for each version: their code is already loaded in a cell, so the next
 * instance starts at once. Loading costs the same as before, but no instance waits for it.
 */
export class StandbyInvocations {
  readonly #state: EngineState;
  readonly #nextInvocation: () => number;
  /** By version, oldest first. */
  readonly #standbys = new Map<number, { invocation: number; cancel: () => void }>();
  #cancelRest = (): void => {};

  constructor(state: EngineState, nextInvocation: () => number) {
    this.#state = state;
    this.#nextInvocation = nextInvocation;
    // The version that ran last is the likeliest to run next.
    state.onSettled = ({ row }) => this.#addAfterRest(row.versionRid);
  }

  add(versionRid: number): void {
    // Pending writes go to the disk first.
    this.#state.options.clock.soon(() => {
      this.#add(versionRid).catch(() => {});
    }); // then there is no standby invocation
  }

  /** Takes the standby invocation of a version. */
  take(versionRid: number): number | undefined {
    const standby = this.#standbys.get(versionRid);
    this.#standbys.delete(versionRid);
    standby?.cancel();
    return standby?.invocation;
  }

  /** Called after versions were deleted. Standbys of other versions return with their next instance. */
  dropAll(): void {
    for (const versionRid of [...this.#standbys.keys()]) this.#drop(versionRid);
  }

  #addAfterRest(versionRid: number): void {
    const { writer, options } = this.#state;
    this.#cancelRest();
    this.#cancelRest = options.clock.after(restMs, () => {
      if (writer.isIdle) this.add(versionRid);
    });
  }

  async #add(versionRid: number): Promise<void> {
    const { options } = this.#state;
    const { clock, cells } = options;
    const version = await options.version(versionRid);
    const known = this.#standbys.get(versionRid);
    if (
      version === undefined ||
      this.#state.isStopped ||
      (known !== undefined && cells.standsBy(known.invocation))
    )
      return;
    this.take(versionRid); // the cell of the old one has died
    const [longest] = this.#standbys.keys();
    if (longest !== undefined && this.#standbys.size >= standbysMax) this.#drop(longest);
    const invocation = this.#nextInvocation();
    const cancel = clock.after(standByMs, () => this.#drop(versionRid));
    this.#standbys.set(versionRid, { invocation, cancel });
    cells.standBy(invocation, version.code);
  }

  #drop(versionRid: number): void {
    const invocation = this.take(versionRid);
    if (invocation !== undefined) this.#state.options.cells.signal(invocation, "abort");
  }
}
