import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { constants, setPriority } from "node:os";

/** Of 1024 parts of a session without a lower priority, a session with this one gets 110 if both compute. */
const sessionPriority = "10";

/**
 * Lets nodes on this machine go first: lowers the priority of every thread of this process, as `nice -n 19` does, and
 * compresses and writes in one thread instead of four, so that they hold fewer cores at a time. Call it before other work,
 * because the number of threads is fixed with the first of them.
 */
export function yieldToNodes(): void {
  process.env["UV_THREADPOOL_SIZE"] = "1";
  for (const thread of readdirSync("/proc/self/task")) {
    try {
      setPriority(Number(thread), constants.priority.PRIORITY_LOW);
    } catch {
      // the thread has ended
    }
  }
  lowerSession();
}

/**
 * Linux divides processors between sessions first (autogroup), and priorities of threads count within one only. The
 * session of others, for example of a shell, stays as it is.
 */
function lowerSession(): void {
  try {
    const session = readFileSync("/proc/self/stat", "utf8").split(") ")[1]!.split(" ")[3];
    if (session === String(process.pid)) writeFileSync("/proc/self/autogroup", sessionPriority);
  } catch {
    // the system has no autogroups
  }
}
