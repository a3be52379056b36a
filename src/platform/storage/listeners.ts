import { AsyncLocalStorage } from "node:async_hooks";
import { Turns } from "../util/turns.ts";
import type { Change } from "./storage.ts";

export type ChangeListener = (changes: readonly Change[]) => Promise<void>;

/**
 * Calls listeners with one batch of changes at a time. Listeners read the changed rows. If two calls
 * overlapped, older rows could replace newer ones and restore deleted data. Changes that arrive during a call
 * form the next batch.
 */
export class Listeners {
  readonly #listeners: ChangeListener[] = [];
  readonly #turns = new Turns();
  /** Inside listeners: the batch that they handle. */
  readonly #turn = new AsyncLocalStorage<{ isOver: boolean }>();
  #waiting: Change[] = [];
  #next: Promise<void> | undefined;

  add(listener: ChangeListener): void {
    this.#listeners.push(listener);
  }

  /** Resolves once every listener has handled the changes. Rejects if one failed. */
  async notify(changes: readonly Change[]): Promise<void> {
    if (changes.length === 0) return undefined;
    // A listener that writes awaits its own changes, which therefore cannot wait for its batch to end.
    if (this.#turn.getStore()?.isOver === false) return this.#call(changes);
    this.#waiting.push(...changes);
    this.#next ??= this.#turns.take(async () => {
      const batch = this.#waiting;
      this.#waiting = [];
      this.#next = undefined;
      const turn = { isOver: false };
      await this.#turn.run(turn, async () => this.#call(batch)).finally(() => (turn.isOver = true));
    });
    return this.#next;
  }

  async #call(changes: readonly Change[]): Promise<void> {
    const faults: unknown[] = [];
    for (const listener of this.#listeners)
      await listener(changes).catch((error: unknown) => faults.push(error));
    if (faults.length > 0) throw faults[0];
  }
}
