import { eventTypePattern } from "../workflow.ts";
import {
  errorLengths,
  type CallMessage,
  type Ending,
  type ErrorMessage,
  type NoteMessage,
} from "../worker/messages.ts";

/*
 * Parses the messages of invocations. A script's isolate sends them, where the script may have replaced our
 * code, and they go into a journal that all instances share: a database must never refuse a parsed message.
 */
/** Bytes of the JSON line of a message: two errors in which every character is escaped to six. */
const headLengthMax = 192 * 1024;
const keyLengthMax = 300;
const configLengthMax = 1024;
const attemptMax = 10_001;
const unaskedMax = 10;
// oxlint-disable-next-line no-control-regex -- control characters are what is looked for
const control = /[\u0000-\u001f]/;

/** Undefined when the message is malformed. */
export function readCall(text: string): CallMessage | undefined {
  const [head, value] = split(text);
  if (!Array.isArray(head)) return undefined;
  const [kind, key, first, second, third, fourth, fifth, sixth] = head as unknown[];
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
      return isStep(key) &&
        isAttempt(first) &&
        isNumber(second) &&
        isConfig(third) &&
        isNumber(fourth) &&
        isValue(value)
        ? [kind, key, first, second, value, third, fourth]
        : undefined;
    case "failed":
      return isStep(key) &&
        isAttempt(first) &&
        isNumber(second) &&
        isNumberOrNull(fourth) &&
        isConfig(fifth) &&
        isNumber(sixth)
        ? [kind, key, first, second, readError(third), fourth, fifth, sixth]
        : undefined;
    default:
      return undefined;
  }
}

export function readNote(text: string): NoteMessage | undefined {
  const [head] = split(text);
  if (!Array.isArray(head)) return undefined;
  const [kind, key, attempt, elapsedMs, config] = head as unknown[];
  return kind === "start" && isStep(key) && isAttempt(attempt) && isNumber(elapsedMs) && isConfig(config)
    ? [kind, key, attempt, elapsedMs, config]
    : undefined;
}

/** A malformed message ends its instance. */
export function readEnding(text: string): Ending {
  const [head, value] = split(text);
  const given = (head ?? {}) as Record<string, unknown>;
  const unasked = Array.isArray(given["unasked"])
    ? given["unasked"].slice(0, unaskedMax).filter((key) => isKey(key, ""))
    : [];
  switch (given["end"]) {
    case "return":
      if (isValue(value)) return { end: "return", value, unasked };
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
  return { end: "throw", error: malformedMessage, unasked };
}

export const malformedMessage: ErrorMessage = {
  name: "WorkflowInternalError",
  message: "The script sent a malformed message about its workflow",
};

function readError(given: unknown): ErrorMessage {
  const error = (given ?? {}) as Record<string, unknown>;
  const text = (key: string, lengthMax: number): string => {
    const value = error[key];
    return typeof value === "string" ? value.slice(0, lengthMax) : "";
  };
  return {
    name: text("name", errorLengths.name) || "Error",
    message: text("message", errorLengths.message),
    stack: text("stack", errorLengths.stack),
  };
}

/** The JSON line at the start of a message, and the text after it. */
function split(text: string): [head: unknown, value: string | undefined] {
  const end = text.indexOf("\n");
  const length = end < 0 ? text.length : end;
  if (length > headLengthMax) return [undefined, undefined];
  return [parse(text.slice(0, length)), end < 0 ? undefined : text.slice(end + 1)];
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
/** Keys that have attempts: steps and rollbacks of steps. */
const isStep = (key: unknown): key is string => isKey(key, "do:") || isKey(key, "rollback:");
const isAttempt = (given: unknown): given is number =>
  Number.isInteger(given) && (given as number) >= 1 && (given as number) <= attemptMax;
const isNumber = (given: unknown): given is number =>
  typeof given === "number" && Math.abs(given) <= Number.MAX_SAFE_INTEGER;
const isNumberOrNull = (given: unknown): given is number | null => given === null || isNumber(given);
const isEventType = (given: unknown): given is string =>
  typeof given === "string" && eventTypePattern.test(given);
/** PostgreSQL stores every character except U+0000. */
const isValue = (given: string | undefined): given is string =>
  given !== undefined && given.length > 1 && (given[0] === "j" || given[0] === "t") && !given.includes("\0");
/** JSON text of an object, which the API returns unchanged. */
const isConfig = (given: unknown): given is string | null =>
  given === null ||
  (typeof given === "string" &&
    given.length <= configLengthMax &&
    !given.includes("\0") &&
    typeof (parse(given) ?? 0) === "object");
