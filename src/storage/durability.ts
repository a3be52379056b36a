import { fdatasync } from "node:fs";
import { open, type FileHandle } from "node:fs/promises";
import { Worker } from "node:worker_threads";

const checkpointIntervalMs = 1000;

export interface Durability {
  /** Resolves when everything committed before the call is on the disk. */
  flush(): Promise<void>;
  close(): Promise<void>;
}

/** For a database in memory: there is no disk to wait for. */
export const noDurability: Durability = { flush: async () => {}, close: async () => {} };

/**
 * Makes commits of a WAL database durable without blocking the thread that commits: fdatasync of the log runs in
 * the thread pool, and commits that arrive while one is under way share the next (group commit). A worker thread
 * copies the log into the database file.
 */
export async function walDurability(path: string): Promise<Durability> {
  const log: FileHandle = await open(`${path}-wal`, "r+");
  const checkpointer = new Worker(new URL("./checkpoint.ts", import.meta.url), {
    workerData: { path, intervalMs: checkpointIntervalMs },
    execArgv: [],
  });
  checkpointer.unref();

  let current: Promise<void> | undefined;
  let next: Promise<void> | undefined;
  const sync = (): Promise<void> => {
    current = new Promise((resolve, reject) => {
      fdatasync(log.fd, (error) => {
        current = undefined;
        if (error === null) resolve();
        else reject(error);
      });
    });
    return current;
  };
  return {
    flush() {
      if (current === undefined) return sync();
      // The running fdatasync may have begun before our pages were written: only the next one surely has them.
      next ??= current
        .catch(() => {})
        .then(() => {
          next = undefined;
          return sync();
        });
      return next;
    },
    async close() {
      checkpointer.ref();
      checkpointer.postMessage("stop", []);
      await new Promise<void>((resolve) => checkpointer.once("exit", () => resolve()));
      await (next ?? current)?.catch(() => {}); // whoever awaits it is told
      await log.close();
    },
  };
}
