import { statSync } from "node:fs";

/**
 * Polls a file and calls back after each change. Returns a function that stops it. Call it before reading the
 * file: it takes the first state synchronously, unlike `watchFile` in node:fs, which misses early changes.
 */
export function watchFile(file: string, intervalMs: number, onChange: () => void): () => void {
  let seen = stampOf(file);
  const timer = setInterval(() => {
    const stamp = stampOf(file);
    if (stamp === seen) return;
    seen = stamp;
    onChange();
  }, intervalMs);
  timer.unref();
  return () => clearInterval(timer);
}

function stampOf(file: string): string | undefined {
  const stats = statSync(file, { bigint: true, throwIfNoEntry: false });
  return stats && `${stats.ino} ${stats.size} ${stats.mtimeNs}`;
}
