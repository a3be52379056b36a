import { AsyncLocalStorage } from "node:async_hooks";
import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import { BlobsUnavailable, DatabaseUnavailable } from "../../platform/storage/faults.ts";
import type { Change } from "../../platform/storage/storage.ts";
import type { WriteHooks } from "../../platform/storage/under-test/write-hooks.ts";
import { milliseconds, selection, type FaultRules } from "./fault-rules.ts";

/** A fault of writes: of rows, or of the bytes of images, assets and large values. */
export const StorageFaultSchema = z.strictObject({
  of: z.enum(["rows", "blobs"]).optional(),
  ...selection,
  then: z.union([z.enum(["full", "lost"]), z.strictObject({ delayMs: milliseconds })]),
});
export type StorageFault = z.output<typeof StorageFaultSchema>;

/** Applies faults to writes, and passes the writes on to other hooks. The test kit's own writes get no faults. */
export class FaultyWrites implements WriteHooks {
  readonly #faults: FaultRules<StorageFault>;
  readonly #next: WriteHooks;
  readonly #own = new AsyncLocalStorage<boolean>();

  constructor(faults: FaultRules<StorageFault>, next: WriteHooks) {
    this.#faults = faults;
    this.#next = next;
  }

  /** Runs work of the test kit, without faults. */
  readonly own = <T>(work: () => T): T => this.#own.run(true, work);

  async around<T>(work: () => Promise<T>, changes: readonly Change[]): Promise<T> {
    const ms = this.#delayOf("rows");
    if (ms > 0) await delay(ms);
    return this.#next.around(work, changes);
  }

  direct<T>(work: () => T): T {
    const ms = this.#delayOf("rows");
    // Blocks the thread, as a slow disk would: SQLite writes in this thread.
    if (ms > 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
    return this.#next.direct(work);
  }

  /** Called before the bytes of an image, an asset or a large value are written. */
  readonly blob = async (): Promise<void> => {
    const ms = this.#delayOf("blobs");
    if (ms > 0) await delay(ms);
  };

  /** Returns the delay of a write in milliseconds. Throws if a fault makes the write fail. */
  #delayOf(what: "rows" | "blobs"): number {
    if (this.#faults.isEmpty || this.#own.getStore() === true) return 0;
    const applied = this.#faults.apply(({ of }) => of === undefined || of === what);
    if (applied === undefined) return 0;
    const { then } = applied.fault;
    if (typeof then === "object") return then.delayMs;
    const message = `a fault of the test kit: the storage is ${then}`;
    if (then === "full") throw Object.assign(new Error(message), { code: "ENOSPC" });
    throw what === "rows"
      ? new DatabaseUnavailable(new Error(message))
      : new BlobsUnavailable(new Error(message));
  }
}
