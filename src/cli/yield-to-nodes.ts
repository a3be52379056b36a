import { readdirSync } from "node:fs";
import { constants, setPriority } from "node:os";

/** Lets nodes on this machine go first: lowers the priority of every thread of this process, as `nice -n 19` does. */
export function yieldToNodes(): void {
  for (const thread of readdirSync("/proc/self/task")) {
    try {
      setPriority(Number(thread), constants.priority.PRIORITY_LOW);
    } catch {
      // the thread has ended
    }
  }
}
