import { forRun, sendAlarm, reportThrown } from "../../../sandbox/worker/run.ts";
import type { AlarmCall, AlarmNotice, AlarmOutcome, ObjectAddress } from "../../../sandbox/protocol.ts";

// Saved before the script's code runs, because a script may replace them.
const { apply } = Reflect;
const { isArray } = Array;
const { isFinite } = Number;
const { now } = Date;
const { floor, random } = Math;
const { getTime } = Date.prototype;
const [NativeDate, NativeTypeError] = [Date, TypeError];
const { defineProperty } = Object;

const ready = Promise.resolve();

/**
 * The store of an object's alarm: its own database, so that it is part of the same transactions. SQL cannot
 * reach the table of keys, and this key is the last one of all, so lists end before it.
 */
const alarmKey = "\u{10FFFF}selvedge alarm";
/** workerd's times end here: 64 bits of nanoseconds since 1970. */
const timeMax = 9_223_372_036_854;

/** When an alarm is due, and a random number that distinguishes it from others with the same time. */
type Stored = [due: number, mark: number];

interface Kv {
  get(key: string): unknown;
  put(key: string, value: unknown): void;
  delete(key: string): boolean;
  list(options?: object): unknown;
}
type Listing = { list(options?: object): unknown };
type Transaction = (closure: (transaction: object) => unknown) => Promise<unknown>;
interface WaitContext {
  waitUntil(promise: Promise<unknown>): void;
}

/** The alarm of one instance. workerd supports none in facets. The gateway receives each change, and calls `fire`. */
export class Alarm {
  readonly #object: ObjectAddress;
  readonly #ctx: WaitContext;
  readonly #kv: Kv;
  readonly #hasHandler: boolean;
  readonly #instance = floor(random() * 2 ** 48);
  #number = 0;
  #turns = 0;
  /** The mark of the alarm that runs now: it counts as no longer set. */
  #running: number | undefined;
  /** Transactions in progress: what they have written may be rolled back. */
  #open = 0;
  #isChanged = false;
  /** Calls of `fire` in progress: the gateway waits for their outcome, which has the alarm that is stored then. */
  #firing = 0;
  #sending: Promise<void> | undefined;

  constructor(ctx: WaitContext, kv: Kv, object: ObjectAddress, hasHandler: boolean) {
    this.#ctx = ctx;
    this.#kv = kv;
    this.#object = object;
    this.#hasHandler = hasHandler;
  }

  /** Pending until the gateway has the last change. Answers must wait for it, so that they promise nothing unstored. */
  get sending(): Promise<void> | undefined {
    return this.#sending;
  }

  /** Adds the methods of alarms to `ctx.storage` or to a transaction. */
  addTo(target: Listing): void {
    define(target, "getAlarm", async () => this.#shown());
    define(target, "setAlarm", async (time: unknown) => this.#set(time));
    define(target, "deleteAlarm", async () => this.#delete());
    hideAlarm(target);
  }

  /** Runs `transaction` of the storage. The closure's transaction has the methods of alarms, too. */
  async within(native: Transaction, closure: unknown): Promise<unknown> {
    this.#open++;
    try {
      return await native((transaction) => {
        this.addTo(transaction as Listing);
        return (closure as (transaction: object) => unknown)(transaction);
      });
    } finally {
      this.#open--;
      this.#send();
    }
  }

  /** Runs `deleteAll` of the storage, which keeps the alarm before the compatibility date 2026-02-24. */
  async deleteAll(native: () => Promise<void>, keepsAlarm: boolean): Promise<void> {
    const stored = this.#stored();
    const deleted = native();
    if (stored !== undefined && keepsAlarm) this.#kv.put(alarmKey, stored);
    else if (stored !== undefined) this.#change();
    await deleted;
  }

  /** Runs the handler if the alarm is due. The result is sent after everything that was written is on disk. */
  async fire(call: AlarmCall, handler: ((info: object) => unknown) | undefined): Promise<AlarmOutcome> {
    this.#firing++;
    try {
      return await this.#fire(call, handler);
    } finally {
      this.#firing--;
      this.#send();
    }
  }

  async #fire(
    { order, retryCount, now: platformNow }: AlarmCall,
    handler: ((info: object) => unknown) | undefined,
  ): Promise<AlarmOutcome> {
    const stored = this.#stored();
    if (stored === undefined || (stored[0] > now() && stored[0] > platformNow)) return this.#outcome("idle");
    const [scheduledTime, mark] = stored;
    if (handler === undefined || order === "drop") {
      this.#kv.delete(alarmKey);
      return this.#outcome("idle");
    }
    this.#running = mark;
    let hasFailed = false;
    try {
      await handler({ retryCount, isRetry: retryCount > 0, scheduledTime });
    } catch (error) {
      hasFailed = true;
      await reportThrown(error);
    }
    this.#running = undefined;
    const isSame = this.#stored()?.[1] === mark;
    if (isSame && (!hasFailed || order === "last")) this.#kv.delete(alarmKey);
    // An alarm that the handler has set replaces the failed one.
    return this.#outcome(hasFailed && isSame && order !== "last" ? "failed" : "done");
  }

  #shown(): number | null {
    const stored = this.#stored();
    return stored === undefined || stored[1] === this.#running ? null : stored[0];
  }

  #set(time: unknown): void {
    const due = floor(toMs("setAlarm", time));
    if (due <= 0) throw new NativeTypeError("setAlarm() cannot be called with an alarm time <= 0");
    if (!this.#hasHandler)
      throw new NativeTypeError(
        "Your Durable Object class must have an alarm() handler in order to call setAlarm()",
      );
    const earliest = now();
    const stored: Stored = [due > earliest ? due : earliest, random()];
    this.#kv.put(alarmKey, stored);
    this.#change();
  }

  #delete(): void {
    if (this.#kv.delete(alarmKey)) this.#change();
  }

  /** The stored alarm; undefined if there is none, or if the script has overwritten it. */
  #stored(): Stored | undefined {
    const stored = this.#kv.get(alarmKey) as Stored | undefined;
    return isArray(stored) && isFinite(stored[0]) && isFinite(stored[1]) ? stored : undefined;
  }

  #outcome(outcome: AlarmOutcome["outcome"]): AlarmOutcome {
    // Writes of a transaction in progress may be rolled back.
    if (this.#open === 0) this.#isChanged = false;
    return { ...this.#notice(), outcome };
  }

  #notice(): AlarmNotice {
    const { name, jurisdiction } = this.#object;
    const due = this.#stored()?.[0] ?? null;
    return {
      __proto__: null,
      due,
      instance: this.#instance,
      number: ++this.#number,
      name,
      jurisdiction,
    } as never;
  }

  #change(): void {
    this.#isChanged = true;
    this.#send();
  }

  #send(): void {
    const isLater = this.#sending !== undefined || this.#open > 0 || this.#firing > 0;
    if (!this.#isChanged || isLater) return;
    const sending = this.#sendAll();
    this.#sending = sending;
    this.#ctx.waitUntil(sending);
  }

  /** Sends the gateway the stored alarm. workerd delays the request until earlier writes are on disk. */
  async #sendAll(): Promise<void> {
    try {
      // Waits for the end of a synchronous transaction, which may be rolled back.
      await ready;
      while (this.#isChanged && this.#open === 0) {
        this.#isChanged = false;
        await forRun(`${this.#object.standing}.a${++this.#turns}`, async () => sendAlarm(this.#notice()));
      }
    } finally {
      this.#sending = undefined;
    }
  }
}

/** Hides the alarm's key from `list`. */
export function hideAlarm(target: Listing): void {
  const native = target.list;
  define(target, "list", (options?: { end?: unknown } | null) =>
    apply(native, target, [options?.end === undefined ? { ...options, end: alarmKey } : options]),
  );
}

function define(target: object, name: string, value: unknown): void {
  defineProperty(target, name, { value, writable: true, configurable: true });
}

/** Milliseconds of a date or a number, with the errors of workerd. */
export function toMs(method: string, time: unknown): number {
  const ms = time instanceof NativeDate ? (apply(getTime, time, []) as number) : time;
  if (typeof ms !== "number")
    throw new NativeTypeError(
      `Failed to execute '${method}' on 'DurableObjectStorage': parameter 1 is not of type 'date'.`,
    );
  if (!isFinite(ms) || ms > timeMax)
    throw new NativeTypeError("The value cannot be converted because it is not a valid Date.");
  return ms;
}
