import { currentRun, tellFront } from "../../cells/worker/run.ts";

/*
 * What a run that somebody watches logs. The methods of `console` are replaced before the script's code is loaded; for a run
 * that nobody watches, they do what they did.
 */

interface Collected {
  logs: { level: string; message: unknown[]; timestamp: number }[];
  exceptions: { name: string; message: string; stack: string; timestamp: number }[];
  truncated: boolean;
}

/** What a handler keeps its run alive with. */
export interface Waiting {
  waitUntil(promise: Promise<unknown>): void;
}

const charactersMax = 256 * 1024;
const { stringify, parse } = JSON;
const now = Date.now.bind(Date);
const collecting = new Map<string, { collected: Collected; characters: number }>();

for (const level of ["debug", "error", "info", "log", "warn"] as const) {
  const native = console[level].bind(console);
  console[level] = (...args: unknown[]) => {
    if (collecting.size > 0) collect(level, args);
    native(...args);
  };
}

function collect(level: string, args: readonly unknown[]): void {
  const run = collecting.get(currentRun() ?? "");
  if (run === undefined || run.collected.truncated) return;
  const message = args.map(shown);
  run.characters += stringify(message).length;
  if (run.characters > charactersMax) run.collected.truncated = true;
  else run.collected.logs.push({ level, message, timestamp: now() });
}

/** A value as JSON can carry it. */
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

/** Runs a handler and tells the front what it logged, when all that it left running is done too. */
export async function traced<T>(ctx: Waiting, handle: () => T | Promise<T>): Promise<T> {
  const run = currentRun()!;
  const collected: Collected = { logs: [], exceptions: [], truncated: false };
  collecting.set(run, { collected, characters: 0 });
  const waitUntil = ctx.waitUntil.bind(ctx);
  const left = new Set<Promise<unknown>>();
  ctx.waitUntil = (promise: Promise<unknown>) => {
    const watched = Promise.resolve(promise)
      .catch((error: unknown) => void collected.exceptions.push(exceptionOf(error)))
      .finally(() => left.delete(watched));
    left.add(watched);
    waitUntil(promise);
  };
  const report = async (): Promise<void> => {
    // What is waited for may ask for more.
    while (left.size > 0) await Promise.all(left);
    collecting.delete(run);
    await tellFront("trace", stringify(collected));
  };
  try {
    return await handle();
  } finally {
    waitUntil(report());
  }
}

/** Something that a handler threw, where the run goes on to say so. */
export function noteException(error: unknown): void {
  collecting.get(currentRun() ?? "")?.collected.exceptions.push(exceptionOf(error));
}

function exceptionOf(error: unknown): Collected["exceptions"][number] {
  const { name, message, stack } = error instanceof Error ? error : new Error(String(error));
  return { name, message, stack: stack ?? "", timestamp: now() };
}
