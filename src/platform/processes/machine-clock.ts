/** Milliseconds on a clock that all processes of this machine share, and that never goes back. */
export const machineMs = (): number => performance.now() + startMs;

const startMs = Number(process.hrtime.bigint()) / 1e6 - performance.now();
