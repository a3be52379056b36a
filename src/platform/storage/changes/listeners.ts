import { AsyncLocalStorage } from "node:async_hooks";
import { Turns } from "../../util/turns.ts";
import type { Change } from "../storage.ts";

export type ChangeListener = (changes: readonly Change[]) => Promise<void>;
/** A row of the database by its columns. */
export type RestoredRow = Readonly<Record<string, unknown>>;
/**
 * The rows that the test kit has replaced, as they were and as they are, by the names of their tables. "many": too many
 * to list. All other tables are unchanged.
 */
export type RestoredRows = ReadonlyMap<string, readonly RestoredRow[] | "many">;
/**
 * Reads everything that a listener keeps in memory, for the case that changes were missed. The returned
 * function replaces the old data before its first `await`, so that no reader sees half of it. The reload ends when
 * the function's promise does. With `restored`, it may keep what belongs to unchanged rows.
 */
export type Reload = (restored?: RestoredRows) => Promise<() => void | Promise<void>>;

/** The reload of a listener that keeps nothing in memory. */
export const nothingToReload: Reload = async () => () => {};
/** The reload of a listener that drops its data and reads it at its next use, or only checks others' data. */
export const reloadByForgetting =
  (forget: () => void | Promise<void>): Reload =>
  async () =>
    forget;

/**
 * Calls listeners with one batch of changes at a time. Listeners read the changed rows. If two calls
 * overlapped, older rows could replace newer ones and restore deleted data. Changes that arrive during a call
 * form the next batch.
 */
export class ChangeListeners {
  readonly #listeners: { listener: ChangeListener; reload: Reload }[] = [];
  readonly #turns = new Turns();
  /** Inside a listener: the batch that it handles. */
  readonly #turn = new AsyncLocalStorage<{ isOver: boolean }>();
  #waiting: Change[] = [];
  #next: Promise<void> | undefined;

  add(listener: ChangeListener, reload: Reload): void {
    this.#listeners.push({ listener, reload });
  }

  /** Resolves once every listener has handled the changes. Rejects if one failed. */
  async notify(changes: readonly Change[]): Promise<void> {
    if (changes.length === 0) return undefined;
    // A listener that writes awaits its own changes, which therefore cannot wait for its batch to end.
    if (this.#turn.getStore()?.isOver === false) return this.#call(changes);
    this.#waiting.push(...changes);
    this.#next ??= this.#take(async () => {
      const batch = this.#waiting;
      this.#waiting = [];
      this.#next = undefined;
      await this.#call(batch);
    });
    return this.#next;
  }

  /**
   * Reloads every listener: all read, then all replace what they have, without waiting in between. If some
   * cannot read, the others are replaced nevertheless, and the failure is thrown.
   */
  async reload(restored?: RestoredRows): Promise<void> {
    await this.#take(async () => {
      const read = await Promise.allSettled(this.#listeners.map(async ({ reload }) => reload(restored)));
      const reloads = read.map(async (each) => {
        if (each.status === "rejected") throw each.reason;
        await each.value();
      });
      throwFirst(await Promise.allSettled(reloads));
    });
  }

  async #take(work: () => Promise<void>): Promise<void> {
    await this.#turns.take(async () => {
      const turn = { isOver: false };
      await this.#turn.run(turn, work).finally(() => (turn.isOver = true));
    });
  }

  async #call(changes: readonly Change[]): Promise<void> {
    const faults: unknown[] = [];
    for (const { listener } of this.#listeners)
      await listener(changes).catch((error: unknown) => faults.push(error));
    if (faults.length > 0) throw faults[0];
  }
}

function throwFirst(results: readonly PromiseSettledResult<void>[]): void {
  const failed = results.find((each) => each.status === "rejected");
  if (failed !== undefined) throw failed.reason;
}
