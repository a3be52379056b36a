import { whenLeft } from "../../../sandbox/worker/concurrency.ts";
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

/** As in workers/tail/standing-run.ts. */
const unwatchedStatus = 205;
const charactersMax = 256 * 1024;
/** Of logs that are sent early: the length that each entry adds, and the entries of a message. */
const entryCharacters = 64;
const earlyLogsMax = 1000;
const { stringify, parse } = JSON;
const now = Date.now.bind(Date);
interface Collecting {
  collected: Collected;
  characters: number;
  /** Work that was passed to `waitUntil`. */
  left: Set<Promise<unknown>>;
  /** For logs that are sent before the end: sends those so far. */
  sendEarly: (() => void) | undefined;
}
/** By token of the run. */
const collecting = new Map<string, Collecting>();
// Saved before the script's code runs, because a script may replace them.
const { get, set, delete: remove } = Map.prototype;
const { apply } = Reflect;
whenLeft((run) => {
  apply(remove, collecting, [run]);
});
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
  run.characters += stringify(message).length + (run.sendEarly === undefined ? 0 : entryCharacters);
  if (run.characters > charactersMax) run.collected.truncated = true;
  else run.collected.logs.push({ level, message, timestamp: now() });
  run.sendEarly?.();
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

/**
 * Runs a handler, and sends its logs to the gateway after it and everything passed to `waitUntil` have ended; with
 * `isEarly` also before.
 */
export async function traced<T>(ctx: Waiting, handle: () => T | Promise<T>, isEarly = false): Promise<T> {
  const { waitUntil: native } = ctx;
  const waitUntil: Waiting["waitUntil"] = (promise) => {
    apply(native, ctx, [promise]);
  };
  const run = begin();
  if (isEarly) run.sendEarly = earlySender(run, waitUntil);
  ctx.waitUntil = (promise: Promise<unknown>) => {
    watchOf(run, promise);
    waitUntil(promise);
  };
  try {
    return await handle();
  } finally {
    waitUntil(reported(run));
  }
}

function begin(): Collecting {
  const run: Collecting = {
    collected: { logs: [], exceptions: [], truncated: false },
    characters: 0,
    left: new Set(),
    sendEarly: undefined,
  };
  apply(set, collecting, [currentRun(), run]);
  return run;
}

/** Sends logs in one message at a time, each with those that were added meanwhile. */
function earlySender(run: Collecting, waitUntil: Waiting["waitUntil"]): () => void {
  let isSending = false;
  const send = async (): Promise<void> => {
    isSending = true;
    await Promise.resolve(); // the logs of one turn go together
    while (run.collected.logs.length > 0) {
      const logs = run.collected.logs.splice(0, earlyLogsMax);
      await notifyGateway("trace", stringify({ logs, isPart: true }));
    }
    isSending = false;
  };
  return () => {
    if (isSending) return;
    const sending = send()
      .catch(() => {})
      .finally(() => run.left.delete(sending));
    run.left.add(sending);
    waitUntil(sending);
  };
}

/** Removes a run when the work that it left running has ended, and sends its logs. */
async function reported(run: Collecting): Promise<void> {
  await ended(run);
  await notifyGateway("trace", stringify(run.collected));
}

async function ended({ left }: Collecting): Promise<void> {
  // Work may pass further promises to `waitUntil`.
  while (left.size > 0) await Promise.all(left);
  apply(remove, collecting, [currentRun()]);
}

function watchOf({ collected, left }: Collecting, promise: Promise<unknown>): void {
  const watched = Promise.resolve(promise)
    .catch((error: unknown) => {
      collected.exceptions.push(exceptionOf(error));
    })
    .finally(() => left.delete(watched));
  left.add(watched);
}

/** Lets the current run, if it is watched, wait for work of a `ctx` that several runs share. */
export function watchWork(promise: Promise<unknown>): void {
  if (collecting.size === 0) return;
  const run = collectingNow();
  if (run !== undefined) watchOf(run, promise);
}

/** As `traced`, for an event of an object: several runs share its `ctx`, and its exceptions reach no gateway. */
export async function tracedInObject<T>(
  waitUntil: Waiting["waitUntil"],
  handle: () => T | Promise<T>,
  tellsExceptions: boolean,
): Promise<T> {
  const run = begin();
  try {
    return await handle();
  } catch (error) {
    if (tellsExceptions) run.collected.exceptions.push(exceptionOf(error));
    throw error;
  } finally {
    waitUntil(reported(run));
  }
}

/** The gateway is not asked before this time, because it answered that no live log was open. */
let askAfter = 0;
const askEveryMs = 5000;

/**
 * Runs a handler of an event that no request began, such as a message of a WebSocket. The isolate does not know whether a
 * live log is open, so it sends the logs to the gateway if the handler logs or throws.
 */
export async function perhapsTraced<T>(
  waitUntil: Waiting["waitUntil"],
  event: string,
  handle: () => T | Promise<T>,
): Promise<T> {
  if (now() < askAfter) return handle();
  const run = begin();
  try {
    return await handle();
  } catch (error) {
    run.collected.exceptions.push(exceptionOf(error));
    throw error;
  } finally {
    waitUntil(asked(run, event));
  }
}

async function asked(run: Collecting, event: string): Promise<void> {
  await ended(run);
  const { logs, exceptions } = run.collected;
  if (logs.length + exceptions.length === 0) return;
  const status = await notifyGateway(`trace ${event}`, stringify(run.collected));
  if (status === unwatchedStatus) askAfter = now() + askEveryMs;
}

/** Records an exception of a handler whose run continues. */
export function noteException(error: unknown): void {
  collectingNow()?.collected.exceptions.push(exceptionOf(error));
}

function exceptionOf(error: unknown): Collected["exceptions"][number] {
  return { ...thrownText(error), timestamp: now() };
}
