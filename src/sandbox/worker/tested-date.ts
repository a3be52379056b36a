import { observeRuns } from "./run.ts";

/*
 * Only with the test kit: `Date` follows the clock of the platform. Each run sets the offset to the system's clock at its
 * start. Timers use the system's clock.
 */
const NativeDate = globalThis.Date;
const { now: nativeNow } = NativeDate;
// Taken before a script's code runs, which may replace globals.
const { construct, get } = Reflect;
let offsetMs = 0;

/** Sets the offset of `Date` from the system's clock, in milliseconds. */
export function setOffset(ms: number): void {
  offsetMs = ms;
}

const now = (): number => nativeNow() + offsetMs;

const handler: ProxyHandler<DateConstructor> = {
  construct(target, given: unknown[], newTarget: Function) {
    const rest = given.length === 0 ? [now()] : given;
    return construct(target, rest, newTarget === TestedDate ? target : newTarget) as object;
  },
  apply: () => new NativeDate(now()).toString(),
  get: (target, key) => (key === "now" ? now : (get(target, key) as unknown)),
};
const TestedDate: DateConstructor = new Proxy(NativeDate, handler);

Object.defineProperty(NativeDate.prototype, "constructor", {
  value: TestedDate,
  writable: true,
  configurable: true,
});
Object.defineProperty(globalThis, "Date", { value: TestedDate, writable: true, configurable: true });

// The token of a run ends with the offset; see sandbox/process/script-clock.ts.
observeRuns((token) => {
  const at = token.lastIndexOf("~");
  if (at >= 0) setOffset(Number(token.slice(at + 1)));
});
