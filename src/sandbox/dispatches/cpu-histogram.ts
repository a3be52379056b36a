/** Upper bounds in milliseconds, in steps of about 2; longer runs are above the last one. */
const boundsMs = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 30_000] as const;

/** Numbers of runs by their CPU time: one for each bound, and one for the runs above. Short ones are left out at the end. */
export type CpuHistogram = number[];

/** Counts a run with this CPU time. */
export function addRun(histogram: CpuHistogram, cpuMs: number): void {
  const found = boundsMs.findIndex((bound) => cpuMs <= bound);
  const at = found < 0 ? boundsMs.length : found;
  while (histogram.length <= at) histogram.push(0);
  histogram[at]!++;
}

/** Adds the runs of another histogram. */
export function addHistogram(histogram: CpuHistogram, other: readonly number[]): void {
  while (histogram.length < other.length) histogram.push(0);
  for (const [at, runs] of other.entries()) histogram[at]! += runs;
}

/**
 * The CPU time that a share of the runs does not exceed: the bound of its step. Runs without a sample took less than the
 * distance of two samples, and count in the first step. Undefined without runs.
 */
export function quantileMs(
  histogram: readonly number[],
  requests: number,
  share: number,
): number | undefined {
  if (requests === 0) return undefined;
  const sampled = histogram.reduce((sum, runs) => sum + runs, 0);
  let passed = Math.max(0, requests - sampled);
  const wanted = share * Math.max(requests, sampled);
  for (const [at, bound] of boundsMs.entries()) {
    passed += histogram[at] ?? 0;
    if (passed >= wanted) return bound;
  }
  return Infinity;
}
