import type { DatabaseSync } from "node:sqlite";
import { bringCopyBack, dropCopy, keepCopy } from "../../platform/storage/under-test/kept-copies.ts";
import type { Storage } from "../../platform/storage/storage.ts";
import type { SavedTime, MovableClock } from "../test-clock.ts";
import type { SavedIds, SeededIds } from "../seeded-ids.ts";
import type { Epochs } from "../epochs.ts";
import { setScriptEpoch } from "../../sandbox/process/script.ts";
import { Turns } from "../../platform/util/turns.ts";
import { TestFault } from "../test-fault.ts";
import type { KeptFiles } from "./kept-files.ts";
import { withFiles } from "./saved-state.ts";

/** A saved state. */
interface State {
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
  readonly #states = new Map<string, State>();
  readonly #turns = new Turns();
  #copies = 0;

  constructor(parts: StatesParts) {
    this.#parts = parts;
  }

  get names(): string[] {
    return [...this.#states.keys()];
  }

  async keep(name: string): Promise<void> {
    if (!this.#states.has(name) && this.#states.size > snapshotsMax)
      throw new TestFault(409, `Expected at most ${snapshotsMax} snapshots. Remove one first`);
    const { ids, clock, files } = this.#parts;
    const copy = this.#copies++;
    await this.#direct((database) => keepCopy(database, copy));
    await files.keep(copy);
    await this.#drop(name);
    this.#states.set(name, { copy, ids: ids?.save(), time: clock.save() });
  }

  async remove(name: string): Promise<void> {
    if (name === startName) throw new TestFault(409, `The snapshot "${startName}" cannot be removed`);
    this.#find(name);
    await this.#drop(name);
  }

  /** All current rows and files as a SQLite database with which a platform can start. */
  async file(): Promise<Uint8Array> {
    const rows = await this.#direct((database) => database.serialize());
    return withFiles(rows, await this.#parts.files.save());
  }

  /** Replaces all rows, files, ids and the time. Requests in progress can neither write nor answer any more. */
  async restore(name: string): Promise<void> {
    const { copy, ids, time } = this.#find(name);
    const { storage, files, epochs, clock, reset } = this.#parts;
    await this.#turns.take(async () => {
      epochs.raise();
      setScriptEpoch(epochs.current);
      await epochs.outside(async () => {
        await this.#direct((database) => bringCopyBack(database, copy));
        await files.bringBack(copy);
        await storage.reload();
        clock.restore(time);
        if (ids !== undefined) this.#parts.ids?.restore(ids);
        await reset();
      });
    });
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
    await this.#direct((database) => dropCopy(database, state.copy));
  }

  #find(name: string): State {
    const state = this.#states.get(name);
    if (state === undefined)
      throw new TestFault(404, `Expected one of the snapshots ${this.names.join(", ")} but received ${name}`);
    return state;
  }
}
