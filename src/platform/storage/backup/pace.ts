import { readFileSync, statSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";

/**
 * Pause after each piece of a backup while the machine is busy. Without pauses a backup holds a core for whole slices
 * of the scheduler, which the node then waits for.
 */
const pauseMs = 2;
/** How long the machine counts as busy after a sign of it. */
const busyMs = 1000;
const sampleMs = 100;
/** The share of time for which this process may wait for a processor before the machine counts as busy. */
const waitShareMax = 0.25;

/**
 * The pace of a backup: small steps with pauses while a node writes or this process has to wait for a processor, and
 * no pauses otherwise.
 */
export class Pace {
  readonly #log: string | undefined;
  #busyUntilMs = 0;
  readonly #waitedSoFarMs: () => number;
  readonly #now: () => number;
  #sampledMs: number;
  #waitedMs: number;

  /** `log`: the write-ahead log of the SQLite database that is backed up. */
  constructor(
    log?: string,
    waitedSoFarMs: () => number = waitedForProcessorMs,
    now = () => performance.now(),
  ) {
    this.#log = log;
    this.#waitedSoFarMs = waitedSoFarMs;
    this.#now = now;
    [this.#sampledMs, this.#waitedMs] = [now(), waitedSoFarMs()];
  }

  /** Call this after each piece of work. A node waits for one piece at most. */
  async rest(): Promise<void> {
    if (this.#isWritten() || this.#isShortOfProcessors()) await delay(pauseMs);
  }

  #isWritten(): boolean {
    if (this.#log === undefined) return false;
    const found = statSync(this.#log, { throwIfNoEntry: false });
    return found !== undefined && Math.abs(Date.now() - found.mtimeMs) < busyMs;
  }

  #isShortOfProcessors(): boolean {
    const nowMs = this.#now();
    const elapsedMs = nowMs - this.#sampledMs;
    if (elapsedMs >= sampleMs) {
      const waitedMs = this.#waitedSoFarMs();
      if (waitedMs - this.#waitedMs > waitShareMax * elapsedMs) this.#busyUntilMs = nowMs + busyMs;
      [this.#sampledMs, this.#waitedMs] = [nowMs, waitedMs];
    }
    return nowMs < this.#busyUntilMs;
  }
}

/** Passes content on, with a rest after each piece. */
export async function* paced<T>(content: AsyncIterable<T>, pace: Pace): AsyncGenerator<T> {
  for await (const piece of content) {
    yield piece;
    await pace.rest();
  }
}

/** How long the main thread has been ready to run without a processor; 0 where the system does not say it. */
function waitedForProcessorMs(): number {
  try {
    return Number(readFileSync("/proc/self/schedstat", "utf8").split(" ")[1]) / 1e6;
  } catch {
    return 0;
  }
}
