import { thrownText } from "../../../sandbox/worker/thrown.ts";
import type { Attempt } from "./attempt.ts";
import { decode, encode, encodedBytes, makeError, NotSerializableError } from "./codec.ts";
import { durationMs, durationMsMax, sleepMs } from "./duration.ts";
import {
  errorLengths,
  type ErrorMessage,
  type HistoryMessage,
  type NoteMessage,
  type Rollback,
  type WaitAnswer,
} from "./messages.ts";
import { readRollback, type Undoable } from "./rollback.ts";
import type { Invocation } from "./invocation.ts";
import {
  readConfig,
  retryDelayMs,
  type DelayFunction,
  type ReadConfig,
  type StepConfig,
} from "./step-config.ts";

// Taken before a script's code runs, which may replace globals.
const { stringify, parse } = JSON;

type Callback = (context: StepContext) => unknown;
interface StepContext {
  step: { name: string; count: number };
  attempt: number;
  config: StepConfig;
  /** Aborted after the timeout of the attempt, and at the end of the invocation. */
  signal: AbortSignal;
}
type Attempted = { value: string } | { error: unknown; isFatal: boolean };

const nameLengthMax = 256;
// oxlint-disable-next-line no-control-regex -- control characters are what is looked for
const control = /[\u0000-\u001f]/;
const typePattern = /^[a-zA-Z0-9_][a-zA-Z0-9_-]{0,99}$/;
const delayFunctionMs = 5000;
const defaultWait = "24 hours";

/**
 * The `step` argument of a workflow's `run`. It lives in the customer's isolate; only results are sent out.
 */
export class Step {
  readonly #invocation: Invocation;
  readonly #defaults: ReadConfig;
  /** In order of their start. */
  readonly #undoable: Undoable[] = [];

  constructor(invocation: Invocation) {
    this.#invocation = invocation;
    this.#defaults = readConfig(undefined, "", this.#retryDelayMs);
  }

  get #retryDelayMs(): number {
    return this.#invocation.limits.retryDelayMs;
  }

  async do(name: string, ...rest: unknown[]): Promise<unknown> {
    checkName(name);
    const callback = typeof rest[0] === "function" ? rest.shift() : rest.splice(0, 2)[1];
    const given = typeof arguments[1] === "function" ? undefined : (arguments[1] as unknown);
    if (typeof callback !== "function") throw new TypeError(`Step "${name}" requires a callback function`);
    const asked = (): ReadConfig =>
      given === undefined ? this.#defaults : readConfig(given, name, this.#retryDelayMs);
    const undo = readRollback(rest[0], name, this.#retryDelayMs);
    const key = this.#invocation.key("do", name);
    if (undo === undefined) return this.#run(key, callback as Callback, asked);
    const undoable: Undoable = { key, config: asked().config, ...undo, output: undefined };
    this.#undoable.push(undoable);
    return (undoable.output = await this.#run(key, callback as Callback, asked));
  }

  /** Runs the rollback handlers of started steps, last step first. A failed handler stops the rollback. */
  async rollBack(thrown: unknown): Promise<Rollback | undefined> {
    if (this.#undoable.length === 0) return undefined;
    const error = thrown instanceof Error ? thrown : toError(toMessage(thrown));
    try {
      for (const { key, config, handler, own, output } of this.#undoable.toReversed()) {
        const stepName = key.slice(key.indexOf(":") + 1);
        const undo: Callback = async ({ step, attempt }) => {
          await handler({ ctx: { step, attempt, config }, error, output, stepName });
        };
        await this.#run(this.#invocation.ask(`rollback:${stepName}`), undo, () => own);
      }
      return { outcome: "complete", error: null };
    } catch (failed) {
      return { outcome: "failed", error: toMessage(failed) };
    }
  }

  /** Returns the result in the journal, or runs the callback and records its result. */
  async #run(key: string, callback: Callback, config: () => ReadConfig): Promise<unknown> {
    const journaled = this.#invocation.history.get(key);
    if (journaled !== undefined && journaled[1] !== "open") return this.#replay(journaled);
    const asked = config();
    const code = this.#invocation.mocks?.code(key, callback) ?? callback;
    return this.#attempts(key, code, kept(journaled, asked.delay) ?? asked, journaled);
  }

  async sleep(name: string, duration: number | string): Promise<void> {
    checkName(name);
    const ms = sleepMs(duration, `the duration of sleep "${name}"`);
    if (ms > durationMsMax)
      throw new TypeError(`Sleep "${name}": expected at most 365 days but received ${String(duration)}`);
    await this.#sleep(name, ms, null);
  }

  async sleepUntil(name: string, timestamp: Date | number): Promise<void> {
    checkName(name);
    const until = timestamp instanceof Date ? timestamp.getTime() : timestamp;
    if (typeof until !== "number" || !Number.isFinite(until)) {
      throw new TypeError(
        `Sleep "${name}": expected a Date or milliseconds for the timestamp but received ${String(timestamp)}`,
      );
    }
    if (until - this.#invocation.host.now() > durationMsMax) {
      throw new TypeError(
        `Sleep "${name}": expected a time within 365 days but received ${new Date(until).toISOString()}`,
      );
    }
    await this.#sleep(name, null, until);
  }

  async waitForEvent(
    name: string,
    options: { type?: string; event?: string; timeout?: number | string },
  ): Promise<{ payload: unknown; timestamp: Date; type: string }> {
    checkName(name);
    const unknown = Object.keys(options ?? {}).find(
      (option) => !["type", "event", "timeout"].includes(option),
    );
    if (unknown !== undefined)
      throw new TypeError(`waitForEvent "${name}" has no option "${unknown}"; it has type, event, timeout`);
    const type = options?.type ?? options?.event;
    if (typeof type !== "string" || !typePattern.test(type)) {
      throw new TypeError(
        `waitForEvent "${name}": expected 1 to 100 letters, digits, "_" and "-" for type but received ${String(type)}`,
      );
    }
    const timeoutMs = durationMs(options.timeout ?? defaultWait, `the timeout of waitForEvent "${name}"`);
    if (timeoutMs > durationMsMax) {
      throw new TypeError(
        `waitForEvent "${name}": expected a timeout of at most 365 days but received ${String(options.timeout)}`,
      );
    }
    const key = this.#invocation.key("waitForEvent", name);
    const journaled = this.#invocation.history.get(key);
    if (journaled?.[1] === "event") {
      const [, , payload, eventType, at] = journaled;
      return {
        payload: decode(payload ?? (await this.#invocation.call(["get", key]))),
        timestamp: new Date(at),
        type: eventType,
      };
    }
    if (journaled?.[1] === "error") throw toError(journaled[2]);
    const isLate = this.#invocation.mocks?.timesOut(key) === true;
    const answer = parse(
      await this.#invocation.wait(["wait", key, type, isLate ? 0 : timeoutMs]),
    ) as WaitAnswer;
    if (answer[0] === "timeout") throw toError(answer[1]);
    return { payload: decode(answer[1]), timestamp: new Date(answer[3]), type: answer[2] };
  }

  async #sleep(name: string, forMs: number | null, untilMs: number | null): Promise<void> {
    const key = this.#invocation.key("sleep", name);
    if (this.#invocation.history.get(key)?.[1] === "value") return;
    if (this.#invocation.mocks?.skipsSleep(key) === true) {
      await this.#invocation.wait(["sleep", key, 0, null], 0);
      return;
    }
    const ms = forMs ?? (untilMs ?? 0) - this.#invocation.host.now();
    await this.#invocation.wait(["sleep", key, forMs, untilMs], ms);
  }

  async #replay(journaled: HistoryMessage): Promise<unknown> {
    if (journaled[1] === "error") throw toError(journaled[2]);
    return decode((journaled[2] as string | null) ?? (await this.#invocation.call(["get", journaled[0]])));
  }

  async #attempts(
    key: string,
    callback: Callback,
    { config, text, timeoutMs, delay }: ReadConfig,
    journaled: HistoryMessage | undefined,
  ): Promise<unknown> {
    const invocation = this.#invocation;
    let [attempt, failures] = journaled?.[1] === "open" ? [journaled[2], journaled[3]] : [0, 0];
    if (journaled?.[1] === "open" && journaled[4]) await invocation.wait(["retry", key]);
    for (;;) {
      attempt++;
      const toKeep = attempt === 1 ? text : null;
      const context = { step: nameAndCount(key), attempt, config };
      // The attempt ends once its outcome is durable; the invocation must not end before.
      const note: NoteMessage = ["start", key, attempt, 0, toKeep];
      const outcome = await invocation.attempt(note, timeoutMs, async (running) => {
        const attempted = await this.#once(callback, context, running, key);
        const elapsedMs = invocation.host.now() - running.since;
        if ("value" in attempted) {
          await invocation.call(["done", key, attempt, elapsedMs, attempted.value, toKeep, running.since]);
          return attempted;
        }
        const { error, delayMs: askedMs } = await this.#delayAfter(attempted, ++failures, delay, context);
        const isAtOnce = askedMs !== null && invocation.mocks?.skipsDelay(key) === true;
        const delayMs = isAtOnce ? 0 : askedMs;
        await invocation.call([
          "failed",
          key,
          attempt,
          elapsedMs,
          toMessage(error),
          delayMs,
          toKeep,
          running.since,
        ]);
        return { error, delayMs };
      });
      if ("value" in outcome) return decode(outcome.value);
      if (outcome.delayMs === null) throw outcome.error;
      await invocation.wait(["retry", key], outcome.delayMs);
    }
  }

  async #once(
    callback: Callback,
    context: Omit<StepContext, "signal">,
    running: Attempt,
    key: string,
  ): Promise<Attempted> {
    const { host, limits } = this.#invocation;
    const whole: StepContext = {
      ...context,
      get signal() {
        return running.signal;
      },
    };
    const name = key.slice(key.indexOf(":") + 1);
    try {
      const work = host.insideStep(async () => callback(whole));
      const value = encode(await Promise.race([work, running.late]), `The result of step "${name}"`);
      // A UTF-16 unit takes at most three bytes.
      if (value.length * 3 <= limits.valueBytesMax || encodedBytes(value) <= limits.valueBytesMax)
        return { value };
      const message = `Step ${name} output is too large. Maximum allowed size is ${limits.valueBytesMax / 2 ** 20}MiB.`;
      return { error: makeError("WorkflowInternalError", message), isFatal: false };
    } catch (error) {
      return { error, isFatal: error instanceof NotSerializableError || host.isNonRetryable(error) };
    }
  }

  /** The delay before the next attempt in milliseconds; null when there is none. */
  async #delayAfter(
    failed: { error: unknown; isFatal: boolean },
    failures: number,
    delay: DelayFunction | undefined,
    { step, attempt, config }: Omit<StepContext, "signal">,
  ): Promise<{ error: unknown; delayMs: number | null }> {
    const { error } = failed;
    const { limit, backoff } = config.retries;
    if (failed.isFatal || failures > limit) return { error, delayMs: null };
    const fixed = config.retries.delay ?? this.#invocation.limits.retryDelayMs;
    if (delay === undefined)
      return { error, delayMs: retryDelayMs(backoff, durationMs(fixed, "retries.delay"), failures) };
    const name = `${step.name}-${step.count}`;
    let cancel = (): void => {};
    try {
      const late = new Promise<never>((_, reject) => {
        cancel = this.#invocation.host.after(delayFunctionMs, () =>
          reject(new Error(`took more than ${delayFunctionMs} ms`)),
        );
      });
      const { delay: _, ...retries } = config.retries;
      const ctx = { step, attempt, config: { ...config, retries } };
      const answer = await Promise.race([delay({ ctx, error: error as Error }), late]);
      return { error, delayMs: retryDelayMs(backoff, durationMs(answer, "its result"), failures) };
    } catch (fault) {
      const why = fault instanceof Error ? fault.message : String(fault);
      const message = `The delay function for step "${name}" failed: ${why}`;
      return { error: makeError("NonRetryableDelayError", message), delayMs: null };
    } finally {
      cancel();
    }
  }
}

function checkName(name: unknown): void {
  if (typeof name === "string" && name.length > 0 && name.length <= nameLengthMax && !control.test(name))
    return;
  throw new TypeError(
    `Step name ${JSON.stringify(name)} exceeds max length (${nameLengthMax} chars) or invalid characters found`,
  );
}

/** A step keeps the configuration of its first attempt, even under newer code. */
function kept(
  journaled: HistoryMessage | undefined,
  delay: DelayFunction | undefined,
): ReadConfig | undefined {
  if (journaled?.[1] !== "open" || journaled[5] === null) return undefined;
  const text = journaled[5];
  const config = parse(text) as StepConfig;
  if (config.retries.delay === "[dynamic]") delete config.retries.delay;
  return { config, text, timeoutMs: durationMs(config.timeout, "timeout"), delay };
}

function nameAndCount(key: string): { name: string; count: number } {
  const end = key.lastIndexOf("-");
  return { name: key.slice(key.indexOf(":") + 1, end), count: Number(key.slice(end + 1)) };
}

/** Converts a thrown value to an error for the journal. */
export function toMessage(thrown: unknown): ErrorMessage {
  const { name, message, stack } = thrownText(jsonOf(thrown));
  return { name, message, ...(stack === "" ? {} : { stack: stack.slice(0, errorLengths.stack) }) };
}

/** An object as JSON if possible; other values unchanged. */
function jsonOf(thrown: unknown): unknown {
  try {
    const isShown = typeof thrown === "object" && thrown !== null && !(thrown instanceof Error);
    return isShown ? stringify(thrown) : thrown;
  } catch {
    return thrown;
  }
}
const toError = ({ name, message, stack }: ErrorMessage): Error => makeError(name, message, stack);
