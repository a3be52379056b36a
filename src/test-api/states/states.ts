import type { DatabaseSync } from "node:sqlite";
import { KeptCopies } from "../../platform/storage/under-test/kept-copies.ts";
import type { Storage } from "../../platform/storage/storage.ts";
import { shownTime, type MovableClock, type SavedTime, type ShownTime } from "../test-clock.ts";
import type { SavedIds, SeededIds } from "../seeded-ids.ts";
import type { Epochs } from "../epochs.ts";
import { setScriptEpoch } from "../../sandbox/process/script.ts";
import { Turns } from "../../platform/util/turns.ts";
import { TestFault } from "../test-fault.ts";
import type { KeptFiles } from "./kept-files.ts";
import { withFiles } from "./saved-state.ts";

/** A saved state. */
interface SavedState {
  /** The number of the copy of all rows and files. */
  copy: number;
  ids: SavedIds | undefined;
  time: SavedTime;
}

interface StatesParts {
  storage: Storage;
  files: KeptFiles;
  epochs: Epochs;
  ids: SeededIds | undefined;
  clock: MovableClock;
  /** Makes all capabilities drop their cached rows. */
  reset: () => Promise<void>;
  /** Runs writes of the test kit, without faults. */
  own: <T>(work: () => Promise<T>) => Promise<T>;
}

const snapshotsMax = 100;
/** The name of the state that a reset restores. */
export const startName = "start";

/** The saved states of the platform by name. The first one is the state at the start. */
export class States {
  readonly #parts: StatesParts;
  readonly #states = new Map<string, SavedState>();
  readonly #turns = new Turns();
  #copies = 0;
  #kept: KeptCopies | undefined;

  constructor(parts: StatesParts) {
    this.#parts = parts;
  }

  get names(): string[] {
    return [...this.#states.keys()];
  }

  keep(name: string): Promise<void> {
    return this.#alone(async () => this.#keep(name));
  }

  async #keep(name: string): Promise<void> {
    if (!this.#states.has(name) && this.#states.size > snapshotsMax)
      throw new TestFault(409, `Expected at most ${snapshotsMax} snapshots. Remove one first`);
    const { ids, clock, files } = this.#parts;
    const copy = this.#copies++;
    await this.#direct((database) => {
      this.#kept ??= new KeptCopies(database);
      this.#kept.keep(copy);
    });
    await files.keep(copy);
    await this.#drop(name);
    this.#states.set(name, { copy, ids: ids?.save(), time: clock.save() });
  }

  async remove(name: string): Promise<void> {
    if (name === startName) throw new TestFault(409, `The snapshot "${startName}" cannot be removed`);
    await this.#alone(async () => {
      this.#find(name);
      await this.#drop(name);
    });
  }

  /** All rows and files, of a snapshot or the current ones, as a SQLite database with which a platform can start. */
  file(name?: string): Promise<Uint8Array> {
    return this.#alone(async () => {
      const copy = name === undefined ? undefined : this.#find(name).copy;
      const rows = await this.#direct((database) =>
        copy === undefined ? database.serialize() : this.#kept!.serialize(copy),
      );
      return withFiles(rows, await this.#parts.files.save(copy));
    });
  }

  /** The time of a snapshot. */
  timeOf(name: string): ShownTime {
    return shownTime(this.#find(name).time);
  }

  /** Replaces all rows, files, ids and the time. Requests in progress can neither write nor answer any more. */
  async restore(name: string): Promise<void> {
    const { storage, files, epochs, clock, reset } = this.#parts;
    await this.#alone(async () => {
      const { copy, ids, time } = this.#find(name);
      epochs.raise();
      setScriptEpoch(epochs.current);
      // At a later time than theirs, timers would find the restored rows due before everything is restored.
      if (clock.isAfter(time)) clock.restore(time);
      const restored = await this.#direct(() => this.#kept!.bringBack(copy));
      await files.bringBack(copy);
      await storage.reload(restored);
      clock.restore(time);
      if (ids !== undefined) this.#parts.ids?.restore(ids);
      await reset();
    });
  }

  /** Runs work alone, as the test kit's own: a reset before its turn does not refuse it. */
  #alone<T>(work: () => Promise<T>): Promise<T> {
    return this.#turns.take(async () => this.#parts.epochs.outside(work));
  }

  /** Runs work on the bare connection. */
  #direct<T>(work: (database: DatabaseSync) => T): Promise<T> {
    return this.#parts.own(async () => this.#parts.storage.direct!(work));
  }

  async #drop(name: string): Promise<void> {
    const state = this.#states.get(name);
    if (state === undefined) return;
    this.#states.delete(name);
    await this.#parts.files.drop(state.copy);
    await this.#direct(() => this.#kept!.drop(state.copy));
  }

  #find(name: string): SavedState {
    const state = this.#states.get(name);
    if (state === undefined)
      throw new TestFault(404, `Expected one of the snapshots ${this.names.join(", ")} but received ${name}`);
    return state;
  }
}
