let offsetMs: (() => number) | undefined;

/** For the test kit: from now on, scripts that are loaded have a `Date` that follows a clock, by its offset. */
export function setScriptClock(offset?: () => number): void {
  offsetMs = offset;
}

/** Whether `Date` in scripts follows a clock of the test kit. */
export const hasScriptClock = (): boolean => offsetMs !== undefined;

/** The end of a run's token, which has the time for the isolate; empty without the test kit. */
export const clockSuffix = (): string => (offsetMs === undefined ? "" : `~${Math.round(offsetMs())}`);
