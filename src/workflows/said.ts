import { eventTypePattern } from "./workflow.ts";
import type { CallMessage, Ending, ErrorMessage, NoteMessage } from "./worker/messages.ts";

/*
 * What segments say, read. It comes from a script's isolate, where code may have replaced whatever makes it, and goes
 * into a journal that all instances share: nothing that a database could refuse may get there.
 */
const keyLengthMax = 300;
const configLengthMax = 4096;
const attemptMax = 1_000_000;
const nameLengthMax = 256;
const messageLengthMax = 64 * 1024;
const stackLengthMax = 4096;
// oxlint-disable-next-line no-control-regex -- control characters are what is looked for
const control = /[\u0000-\u001f]/;

/** Undefined for what is not understood. */
export function readCall(text: string): CallMessage | undefined {
  const said = parse(text);
  if (!Array.isArray(said)) return undefined;
  const [kind, key, first, second, third, fourth, fifth] = said as unknown[];
  switch (kind) {
    case "get":
      return isKey(key, "") ? [kind, key] : undefined;
    case "retry":
      return isStep(key) ? [kind, key] : undefined;
    case "sleep":
      return isKey(key, "sleep:") && isNumberOrNull(first) && isNumberOrNull(second)
        ? [kind, key, first, second]
        : undefined;
    case "wait":
      return isKey(key, "waitForEvent:") && isEventType(first) && isNumber(second)
        ? [kind, key, first, second]
        : undefined;
    case "done":
      return isStep(key) && isAttempt(first) && isNumber(second) && isText(third) && isConfig(fourth)
        ? [kind, key, first, second, third, fourth]
        : undefined;
    case "failed":
      return isStep(key) && isAttempt(first) && isNumber(second) && isNumberOrNull(fourth) && isConfig(fifth)
        ? [kind, key, first, second, readError(third), fourth, fifth]
        : undefined;
    default:
      return undefined;
  }
}

export function readNote(text: string): NoteMessage | undefined {
  const said = parse(text);
  if (!Array.isArray(said)) return undefined;
  const [kind, key, attempt, elapsedMs, config] = said as unknown[];
  return kind === "start" && isStep(key) && isAttempt(attempt) && isNumber(elapsedMs) && isConfig(config)
    ? [kind, key, attempt, elapsedMs, config]
    : undefined;
}

/** What is not understood is the end of its instance. */
export function readEnding(text: string): Ending {
  const given = (parse(text) ?? {}) as Record<string, unknown>;
  const unasked = Array.isArray(given["unasked"]) ? given["unasked"].filter((key) => isKey(key, "")) : [];
  switch (given["end"]) {
    case "return":
      if (isText(given["value"])) return { end: "return", value: given["value"], unasked };
      break;
    case "throw": {
      const rollback = given["rollback"] as Record<string, unknown> | null | undefined;
      return {
        end: "throw",
        error: readError(given["error"]),
        ...(rollback === undefined || rollback === null
          ? {}
          : {
              rollback:
                rollback["outcome"] === "complete"
                  ? { outcome: "complete", error: null }
                  : { outcome: "failed", error: readError(rollback["error"]) },
            }),
        unasked,
      };
    }
    case "suspend":
      if (isNumber(given["waiting"])) return { end: "suspend", waiting: given["waiting"], unasked };
      break;
    case "held":
      return { end: "held" };
  }
  return { end: "throw", error: notUnderstood, unasked };
}

export const notUnderstood: ErrorMessage = {
  name: "WorkflowInternalError",
  message: "The script told of its workflow in a way that is not understood",
};

function readError(given: unknown): ErrorMessage {
  const error = (given ?? {}) as Record<string, unknown>;
  const text = (key: string, lengthMax: number): string => {
    const value = error[key];
    return typeof value === "string" ? value.slice(0, lengthMax) : "";
  };
  return {
    name: text("name", nameLengthMax) || "Error",
    message: text("message", messageLengthMax),
    stack: text("stack", stackLengthMax),
  };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

const isKey = (key: unknown, prefix: string): key is string =>
  typeof key === "string" && key.startsWith(prefix) && key.length <= keyLengthMax && !control.test(key);
/** What has attempts: a step, or what undoes one. */
const isStep = (key: unknown): key is string => isKey(key, "do:") || isKey(key, "rollback:");
const isAttempt = (given: unknown): given is number =>
  Number.isInteger(given) && (given as number) >= 1 && (given as number) <= attemptMax;
const isNumber = (given: unknown): given is number =>
  typeof given === "number" && Math.abs(given) <= Number.MAX_SAFE_INTEGER;
const isNumberOrNull = (given: unknown): given is number | null => given === null || isNumber(given);
const isEventType = (given: unknown): given is string =>
  typeof given === "string" && eventTypePattern.test(given);
/** The text of a value: PostgreSQL keeps everything but this character. */
const isText = (given: unknown): given is string =>
  typeof given === "string" && given.length > 1 && !given.includes("\0");
/** JSON of an object; shown as it is. */
const isConfig = (given: unknown): given is string | null =>
  given === null ||
  (typeof given === "string" &&
    given.length <= configLengthMax &&
    !given.includes("\0") &&
    typeof (parse(given) ?? 0) === "object");
