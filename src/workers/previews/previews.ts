import { CellError } from "../../sandbox/errors.ts";
import type { SingleUseCell, SingleUseCells } from "../../sandbox/single-use.ts";
import { previewErrors } from "./errors.ts";
import { previewLimits } from "./limits.ts";

/** The connection of a caller. */
interface Client {
  readonly destroyed: boolean;
  once(event: "close", listener: () => void): unknown;
  off(event: "close", listener: () => void): unknown;
}

/** The previews in progress. Each has a process; an account cannot take those of others. */
export class Previews {
  readonly #cells: SingleUseCells;
  readonly #stopping = new AbortController();
  readonly #running = new Set<{ accountId: string; done: Promise<unknown> }>();

  constructor(cells: SingleUseCells) {
    this.#cells = cells;
  }

  /** Does work in a process of its own, which ends with the work, with the caller's connection, or with the server. */
  async run<T>(accountId: string, client: Client, work: (cell: SingleUseCell) => Promise<T>): Promise<T> {
    this.#stopping.signal.throwIfAborted();
    const ofAccount = [...this.#running].filter((each) => each.accountId === accountId);
    if (ofAccount.length >= previewLimits.accountMax) throw previewErrors.accountBusy();
    if (this.#running.size >= previewLimits.totalMax) throw previewErrors.busy();
    const left = new AbortController();
    const leave = (): void => left.abort(previewErrors.ended("the caller has left"));
    client.once("close", leave);
    if (client.destroyed) leave();
    const done = this.#cells.use(AbortSignal.any([this.#stopping.signal, left.signal]), work);
    const running = { accountId, done };
    this.#running.add(running);
    try {
      return await done;
    } catch (error) {
      // Errors of the code are part of the result.
      throw error instanceof CellError ? previewErrors.unavailable() : error;
    } finally {
      client.off("close", leave);
      this.#running.delete(running);
    }
  }

  /** Ends the previews in progress, whose callers get an error. Later ones are refused. */
  async stop(): Promise<void> {
    this.#stopping.abort(previewErrors.ended("the server is stopping"));
    await Promise.allSettled([...this.#running].map(async ({ done }) => done));
  }
}
