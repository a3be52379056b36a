import { statSync } from "node:fs";

/**
 * Calls back after each look at which a file is another than at the one before; returns how to stop. Watch first,
 * then read: the first look is taken now, where that of `watchFile` in node:fs comes later, and misses what happens until then.
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
