import type { ChildProcess } from "node:child_process";

/** Times in ms. */
export interface InTurns {
  running: number[];
  stopped: number[];
}

const turnMs = 500;

/**
 * Times `action` repeatedly while a process runs and while SIGSTOP pauses it, alternating every half second until the
 * process ends, so that other load of the machine affects both alike. The process leads a group (`detached`).
 */
export async function timesInTurns(child: ChildProcess, action: () => Promise<unknown>): Promise<InTurns> {
  const times: InTurns = { running: [], stopped: [] };
  const state = { isEnded: false };
  child.once("exit", () => (state.isEnded = true));
  let now: keyof InTurns = "running";
  let sinceMs = performance.now();
  while (!state.isEnded) {
    if (performance.now() - sinceMs > turnMs) {
      now = now === "running" ? "stopped" : "running";
      try {
        process.kill(-child.pid!, now === "running" ? "SIGCONT" : "SIGSTOP");
      } catch {
        // it has ended
      }
      sinceMs = performance.now();
    }
    const startedMs = performance.now();
    await action();
    times[now].push(performance.now() - startedMs);
  }
  return times;
}
