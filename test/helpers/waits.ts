/**
 * How long a test waits for a condition that must come, in ms, if it does not say more. A machine with ten times the
 * load may need seconds for what takes milliseconds, so no wait is shorter than this: times are asserted in `bench/`.
 */
export const waitMsMax = 30_000;

/** How long a test or a hook may take, in ms: long enough to end only what hangs. */
export const testMsMax = 180_000;

interface Waiting {
  timeout?: number;
  interval?: number;
}

export const longer = (options: number | Waiting): Waiting =>
  typeof options === "number" ? { timeout: options } : { timeout: waitMsMax, ...options };
