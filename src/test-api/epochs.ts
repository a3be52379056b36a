import { AsyncLocalStorage } from "node:async_hooks";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { IncomingMessage, ServerResponse } from "node:http";
import { ApiError } from "../control/api/errors.ts";
import type { Change } from "../platform/storage/storage.ts";
import type { WriteHooks } from "../platform/storage/under-test/write-hooks.ts";

/** A request to any listener of the platform, and everything that it causes. */
export interface Cause {
  readonly epoch: number;
  /** Identifies the request among those of its epoch. Its ids are derived from this key. */
  key: string;
  /** The number of ids that it has created. */
  ids: number;
  /** The kinds and ids of its changes. */
  readonly changed: string[];
  /** Whether a reset happened before the request was answered. */
  isStale: boolean;
}

const channels = ["http.server.request.start"] as const;

/**
 * Numbers the times between two resets. Every request belongs to the epoch in which it began. If a reset happens before
 * the request is answered, the request can neither write nor answer. Timers and connections that an answered request has
 * left running are the platform's own work.
 */
export class Epochs implements WriteHooks {
  readonly #origins = new AsyncLocalStorage<Cause>();
  /** The rows that the connection has written since it was opened. */
  rowsWritten: (() => number) | undefined;
  /** Requests without an answer. */
  readonly #open = new Set<Cause>();
  #epoch = 0;

  get current(): number {
    return this.#epoch;
  }

  /** The request that caused the running code; undefined for the platform's own work. */
  get origin(): Cause | undefined {
    const cause = this.#origins.getStore();
    return cause === undefined || cause.isStale || cause.epoch === this.#epoch ? cause : undefined;
  }

  open(): void {
    for (const channel of channels) subscribe(channel, this.#begin);
  }

  close(): void {
    for (const channel of channels) unsubscribe(channel, this.#begin);
  }

  /** Begins the next epoch. */
  raise(): void {
    this.#epoch++;
    for (const cause of this.#open) cause.isStale = true;
    this.#open.clear();
  }

  /** Runs work as the platform's own, without a request that caused it. */
  outside<T>(work: () => Promise<T>): Promise<T> {
    return this.#origins.exit(work);
  }

  /** Throws if the running code was caused by a request of an earlier epoch. */
  check(): void {
    if (this.origin?.isStale === true) throw resetMeanwhile();
  }

  /** Runs the work of a transaction, and records its changes for the request. */
  async around<T>(work: () => Promise<T>, changes: readonly Change[]): Promise<T> {
    this.check();
    const { origin } = this;
    if (origin === undefined || this.rowsWritten === undefined) return work();
    const before = this.rowsWritten();
    const result = await work();
    const written = this.rowsWritten() - before;
    for (const { kind, id } of changes) origin.changed.push(`${kind} ${id}`);
    if (changes.length === 0 && written > 0) origin.changed.push(written === 1 ? "1 row" : `${written} rows`);
    return result;
  }

  direct<T>(work: () => T): T {
    this.check();
    return work();
  }

  readonly #begin = (message: unknown): void => {
    const { request, response } = message as { request: IncomingMessage; response: ServerResponse };
    const key = `${request.method} ${request.url}`;
    const cause: Cause = { epoch: this.#epoch, key, ids: 0, changed: [], isStale: false };
    this.#open.add(cause);
    response.once("finish", () => this.#open.delete(cause));
    this.#origins.enterWith(cause);
  };
}

export const resetMeanwhile = (): ApiError =>
  new ApiError(409, 10409, "The test kit reset this platform during the call. The call had no effect");
