import { currentRun, notifyGateway } from "../../../sandbox/worker/run.ts";
import { thrownText } from "../../../sandbox/worker/thrown.ts";

/*
 * Collects the logs of watched runs. The methods of `console` are replaced before the script's code is
 * loaded; for other runs they do the same as before.
 */

interface Collected {
  logs: { level: string; message: unknown[]; timestamp: number }[];
  exceptions: { name: string; message: string; stack: string; timestamp: number }[];
  truncated: boolean;
}

/** The part of `ctx` that keeps a run alive. */
export interface Waiting {
  waitUntil(promise: Promise<unknown>): void;
}

const charactersMax = 256 * 1024;
const { stringify, parse } = JSON;
const now = Date.now.bind(Date);
interface Collecting {
  collected: Collected;
  characters: number;
}
/** By token of the run. */
const collecting = new Map<string, Collecting>();
// Saved before the script's code runs, because a script may replace them.
const { get, set, delete: remove } = Map.prototype;
const { apply } = Reflect;
const collectingNow = (): Collecting | undefined =>
  apply(get, collecting, [currentRun()]) as Collecting | undefined;

for (const level of ["debug", "error", "info", "log", "warn"] as const) {
  const native = console[level].bind(console);
  console[level] = (...args: unknown[]) => {
    if (collecting.size > 0) collect(level, args);
    native(...args);
  };
}

function collect(level: string, args: readonly unknown[]): void {
  const run = collectingNow();
  if (run === undefined || run.collected.truncated) return;
  const message = args.map(shown);
  run.characters += stringify(message).length;
  if (run.characters > charactersMax) run.collected.truncated = true;
  else run.collected.logs.push({ level, message, timestamp: now() });
}

/** Converts a value for JSON. */
function shown(value: unknown): unknown {
  if (typeof value === "bigint") return String(value);
  if (value instanceof Error) return value.stack ?? String(value);
  try {
    const text = stringify(value) as string | undefined;
    return text === undefined ? String(value) : (parse(text) as unknown);
  } catch {
    return Object.prototype.toString.call(value);
  }
}

/** Runs a handler, and sends its logs to the gateway after it and everything passed to `waitUntil` have ended. */
export async function traced<T>(ctx: Waiting, handle: () => T | Promise<T>): Promise<T> {
  const run = currentRun()!;
  const collected: Collected = { logs: [], exceptions: [], truncated: false };
  apply(set, collecting, [run, { collected, characters: 0 }]);
  const waitUntil = ctx.waitUntil.bind(ctx);
  const left = new Set<Promise<unknown>>();
  ctx.waitUntil = (promise: Promise<unknown>) => {
    const watched = Promise.resolve(promise)
      .catch((error: unknown) => {
        collected.exceptions.push(exceptionOf(error));
      })
      .finally(() => left.delete(watched));
    left.add(watched);
    waitUntil(promise);
  };
  const report = async (): Promise<void> => {
    // Waited-for work may add more.
    while (left.size > 0) await Promise.all(left);
    apply(remove, collecting, [run]);
    await notifyGateway("trace", stringify(collected));
  };
  try {
    return await handle();
  } finally {
    waitUntil(report());
  }
}

/** Records an exception of a handler whose run continues. */
export function noteException(error: unknown): void {
  collectingNow()?.collected.exceptions.push(exceptionOf(error));
}

function exceptionOf(error: unknown): Collected["exceptions"][number] {
  return { ...thrownText(error), timestamp: now() };
}
