import { isRefusedForSpace } from "../faults.ts";
import type { Change, Storage, Write } from "../storage.ts";

/**
 * Runs a transaction whose rows name new content. `discard` deletes the content; it runs only if the
 * transaction has certainly failed. If the answer to the commit is lost, the rows may be there, so the content
 * stays: the sweep of unnamed content asks the database later.
 */
export async function writeNaming<T>(
  storage: Storage,
  discard: () => Promise<void>,
  work: (trx: Write, changed: (change: Change) => void) => Promise<T>,
): Promise<T> {
  let isCommitting = false;
  try {
    return await storage.write(async (trx, changed) => {
      isCommitting = false;
      const result = await work(trx, changed);
      isCommitting = true;
      return result;
    });
  } catch (error) {
    if (!isCommitting || isRefusedForSpace(error)) await discard();
    throw error;
  }
}
