import { durationMs } from "./duration.ts";

/** The effective configuration of a step, as passed to its callback and stored in the journal. */
export interface StepConfig {
  retries: { limit: number; delay?: number | string; backoff: Backoff };
  timeout: number | string;
  sensitive?: "output";
}
type Backoff = "constant" | "linear" | "exponential";
export type DelayFunction = (input: {
  ctx: unknown;
  error: Error;
}) => number | string | Promise<number | string>;

export interface ReadConfig {
  config: StepConfig;
  /** JSON for the journal. */
  text: string;
  timeoutMs: number;
  delay: DelayFunction | undefined;
}

// Taken before a script's code runs, which may replace globals.
const { stringify } = JSON;
const backoffs: readonly Backoff[] = ["constant", "linear", "exponential"];
const limitMax = 10_000;
const delayMsMax = 365 * 86_400_000;

export const defaultTimeout = "10 minutes";
export const defaultLimit = 5;

/** Validates that a value is an object with known options only. */
export function record(
  value: unknown,
  step: string,
  what: string,
  known: readonly string[],
): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new TypeError(`Step "${step}": expected an object for ${what}`);
  const unknown = Object.keys(value).find((key) => !known.includes(key));
  if (unknown !== undefined)
    throw new TypeError(`Step "${step}": ${what} has no option "${unknown}"; it has ${known.join(", ")}`);
  return value as Record<string, unknown>;
}

/** Validates the options of step.do. Unknown options are rejected by name. */
export function readConfig(given: unknown, step: string, retryDelayMs: number): ReadConfig {
  const refuse = (message: string): never => {
    throw new TypeError(`Step "${step}": ${message}`);
  };
  const options =
    given === undefined ? {} : record(given, step, "the configuration", ["retries", "timeout", "sensitive"]);
  const retries =
    options["retries"] === undefined
      ? {}
      : record(options["retries"], step, "retries", ["limit", "delay", "backoff"]);
  const { limit = defaultLimit, delay = retryDelayMs, backoff = "exponential" } = retries;
  if (typeof limit !== "number" || !(limit >= 0))
    refuse(`expected a number of at least 0 for retries.limit but received ${String(limit)}`);
  if (!backoffs.includes(backoff as Backoff))
    refuse(`expected one of ${backoffs.join(", ")} for retries.backoff but received ${String(backoff)}`);
  if (typeof delay !== "function") durationMs(delay, `retries.delay of step "${step}"`);
  const timeout = options["timeout"] ?? defaultTimeout;
  const timeoutMs = durationMs(timeout, `timeout of step "${step}"`);
  if (timeoutMs <= 0) refuse("expected more than 0 for timeout");
  const { sensitive } = options;
  if (sensitive !== undefined && sensitive !== "output")
    refuse(`expected "output" for sensitive but received ${JSON.stringify(sensitive)}`);
  const isDynamic = typeof delay === "function";
  const config: StepConfig = {
    retries: {
      limit: Math.min(limit as number, limitMax),
      ...(isDynamic ? {} : { delay: delay as number | string }),
      backoff: backoff as Backoff,
    },
    timeout: timeout as number | string,
    ...(sensitive === "output" ? { sensitive } : {}),
  };
  // The object is passed to callbacks and shared by steps.
  Object.freeze(config.retries);
  Object.freeze(config);
  return {
    config,
    text: stringify(isDynamic ? { ...config, retries: { ...config.retries, delay: "[dynamic]" } } : config),
    timeoutMs,
    delay: isDynamic ? (delay as DelayFunction) : undefined,
  };
}

/** The delay after a failure, counted from 1; milliseconds. */
export function retryDelayMs(backoff: Backoff, delayMs: number, failures: number): number {
  const factor = backoff === "constant" ? 1 : backoff === "linear" ? failures : 2 ** (failures - 1);
  return Math.min(delayMs * factor, delayMsMax);
}
