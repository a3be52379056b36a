import { fdatasync } from "node:fs";
import { open, type FileHandle } from "node:fs/promises";
import { promisify } from "node:util";
import { Checkpointer, type LogFollower } from "./checkpointer.ts";
import { CommitTimes } from "./commit-times.ts";
import { DatabaseUnavailable } from "./faults.ts";

const checkpointIntervalMs = 1000;

export interface Durability {
  /** Resolves once everything committed before the call is on disk. */
  flush(): Promise<void>;
  close(): Promise<void>;
  /** Sends a message to the thread that follows the log, if there is one. */
  post?(message: object): void;
  /** Call this after the database is closed. */
  released?(): void;
}

/** For a database in memory, which has no disk. */
export const noDurability: Durability = { flush: async () => {}, close: async () => {} };

/**
 * Makes commits of a WAL database durable without blocking the committing thread. fdatasync of the log runs
 * in the thread pool, and commits that arrive during one share the next (group commit). A worker thread
 * copies the log into the database file.
 */
export async function walDurability(
  path: string,
  sync: (descriptor: number) => Promise<void> = promisify(fdatasync),
  follower?: LogFollower,
): Promise<Durability> {
  const log: FileHandle = await open(`${path}-wal`, "r+");
  const times = follower && new CommitTimes(path, follower.timesPath);
  const checkpointer = new Checkpointer(
    { path, intervalMs: checkpointIntervalMs },
    follower && { ...follower, data: { ...follower.data, indexDescriptor: times!.descriptor } },
  );

  let current: Promise<void> | undefined;
  let next: Promise<void> | undefined;
  /**
   * After a failed fdatasync, Linux reports success for pages that it never wrote, and everything after them
   * in the log is lost too. Therefore the log is rewritten from memory before any commit counts as durable
   * again.
   */
  let isLogLost = false;
  const syncOrRenew = async (): Promise<void> => {
    if (isLogLost) {
      if (!(await checkpointer.renew()))
        throw new DatabaseUnavailable("The database's log could not be written to disk");
      isLogLost = false;
    } else {
      isLogLost = true;
      await sync(log.fd);
      isLogLost = false;
    }
  };
  const start = (): Promise<void> => {
    current = syncOrRenew().finally(() => (current = undefined));
    return current;
  };
  return {
    flush() {
      times?.note();
      if (current === undefined) return start();
      // The running fdatasync may have begun before our pages were written. Only the next one is sure to
      // include them.
      next ??= current
        .catch(() => {})
        .then(() => {
          next = undefined;
          return start();
        });
      return next;
    },
    async close() {
      await (next ?? current)?.catch(() => {}); // the callers get its error
      await checkpointer.stop();
      await log.close();
    },
    post: (message) => checkpointer.post(message),
    released: () => times?.close(),
  };
}

/** Flushes a file's content, or the entries of a folder, which makes renames in it durable. */
export async function syncPath(path: string): Promise<void> {
  const handle = await open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
