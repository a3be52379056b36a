import { DatabaseSync } from "node:sqlite";
import { parentPort, workerData } from "node:worker_threads";

/** Runs in a worker thread: moves committed pages from the write-ahead log into the database file. */
const { path, intervalMs } = workerData as { path: string; intervalMs: number };
const database = new DatabaseSync(path, { timeout: 5000 });
const timer = setInterval(() => {
  try {
    database.exec("pragma wal_checkpoint(passive)");
  } catch {
    // The disk is full, or away: what is in the log stays there, and the next turn tries again.
  }
}, intervalMs);
parentPort?.on("message", () => {
  clearInterval(timer);
  database.close();
  parentPort?.close();
});
