import { DatabaseSync } from "node:sqlite";
import { parentPort, workerData } from "node:worker_threads";

/** Runs in a worker thread: moves committed pages from the write-ahead log into the database file. */
const { path, intervalMs } = workerData as { path: string; intervalMs: number };
const database = new DatabaseSync(path, { timeout: 5000 });
const timer = setInterval(() => database.exec("pragma wal_checkpoint(passive)"), intervalMs);
parentPort?.on("message", () => {
  clearInterval(timer);
  database.close();
  parentPort?.close();
});
