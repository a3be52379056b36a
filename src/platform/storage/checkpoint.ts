import { DatabaseSync } from "node:sqlite";
import { parentPort, workerData } from "node:worker_threads";

/**
 * Runs in a worker thread and moves committed pages from the write-ahead log into the database file. On
 * "renew" it moves all pages, truncates the log, and replies whether the result is on disk. On "stop" it
 * ends.
 */
const { path, intervalMs } = workerData as { path: string; intervalMs: number };
const database = new DatabaseSync(path, { timeout: 5000 });
const timer = setInterval(() => {
  try {
    database.exec("pragma wal_checkpoint(passive)");
  } catch {
    // The disk is full or unavailable. The pages stay in the log, and the next interval tries again.
  }
}, intervalMs);
parentPort?.on("message", (message: "renew" | "stop") => {
  if (message === "renew") {
    parentPort?.postMessage(renew(), []);
    return;
  }
  clearInterval(timer);
  database.close();
  parentPort?.close();
});

function renew(): boolean {
  try {
    const { busy } = database.prepare("pragma wal_checkpoint(truncate)").get() as { busy: number };
    return busy === 0;
  } catch {
    return false;
  }
}
