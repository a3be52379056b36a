import { isoTime } from "../../../platform/util/ids.ts";
import type { InstanceError, InstanceRow, StepError } from "../instance.ts";
import { entryName, type StepAttempt, type JournalEntry, type History } from "../store/journal.ts";
import { decode } from "../worker/codec.ts";
import type { StepConfig } from "../worker/step-config.ts";

/** Converts the journal of an instance to the steps that the API returns. */
const previewCharactersMax = 1024;
const redacted = "[REDACTED]";

/** An entry of an instance's timeline, in the format of the public API. Times are RFC 3339. */
export type TimelineStep =
  | {
      type: "step" | "rollback";
      name: string;
      start: string;
      end: string | null;
      success: boolean | null;
      /** JSON, truncated when it is long. */
      output: string | null;
      error: ShownError | null;
      config: object;
      attempts: { start: string; end: string | null; success: boolean | null; error: ShownError | null }[];
    }
  | { type: "sleep"; name: string; start: string; end: string; finished: boolean; error: null }
  | {
      type: "waitForEvent";
      name: string;
      start: string;
      end: string;
      finished: boolean;
      event_type: string;
      output?: string;
      error: ShownError | null;
    }
  | { type: "termination"; trigger: { source: string } };

export interface ShownError {
  name: string;
  message: string;
}

/** An error as callers see it, from JSON; null without one. */
export const shownError = (json: string | null | undefined): ShownError | null => {
  if (json === null || json === undefined || json === "") return null;
  const { name, message } = JSON.parse(json) as StepError;
  return { name, message };
};

export function shownRollback(json: string | null): {
  outcome: "complete" | "failed";
  error: ShownError | null;
} | null {
  const { rollback } = JSON.parse(json ?? "{}") as Partial<InstanceError>;
  if (rollback === undefined) return null;
  const { outcome, error } = rollback;
  return { outcome, error: error === null ? null : { name: error.name, message: error.message } };
}

/** The steps, sleeps and waits of an instance. */
export function timeline(row: InstanceRow, history: History): TimelineStep[] {
  const steps = [...history.entries.values()].map((entry) => stepOf(entry, row));
  if (row.status === "terminated") steps.push({ type: "termination", trigger: { source: "api" } });
  return steps;
}

function stepOf(entry: JournalEntry, row: InstanceRow): TimelineStep {
  const name = entryName(entry.key);
  const start = isoTime(entry.startedOn);
  const error =
    entry.outcome !== undefined && "error" in entry.outcome ? shownError(entry.outcome.error) : null;
  // An event may have arrived before the wait that takes it.
  const end = Math.max(entry.startedOn, entry.endedOn ?? entry.due ?? row.modifiedOn);
  const output = previewOf(entry);
  switch (entry.kind) {
    case "sleep": {
      const finished = entry.outcome !== undefined || (entry.due ?? 0) <= row.modifiedOn;
      return { type: "sleep", name, start, end: isoTime(end), finished, error: null };
    }
    case "waitForEvent":
      return {
        type: "waitForEvent",
        name,
        start,
        end: isoTime(end),
        finished: entry.outcome !== undefined,
        event_type: entry.eventType ?? "",
        ...(output === null ? {} : { output }),
        error,
      };
    case "do":
    case "rollback":
      return {
        type: entry.kind === "do" ? "step" : "rollback",
        name,
        start,
        end: entry.endedOn === null ? null : isoTime(end),
        success: entry.outcome === undefined ? null : error === null,
        output,
        error,
        config: configOf(entry),
        attempts: entry.attempts.map(attemptOf),
      };
  }
}

function attemptOf({ startedOn, endedOn, error }: StepAttempt): {
  start: string;
  end: string | null;
  success: boolean | null;
  error: ShownError | null;
} {
  return {
    start: isoTime(startedOn),
    end: endedOn === null ? null : isoTime(Math.max(startedOn, endedOn)),
    success: endedOn === null ? null : error === null,
    error: shownError(error),
  };
}

const configOf = ({ config }: JournalEntry): object =>
  config === null ? {} : (JSON.parse(config) as StepConfig);
const isSensitive = (entry: JournalEntry): boolean =>
  (configOf(entry) as Partial<StepConfig>).sensitive === "output";

/** The result of a step as a JSON value. */
export function outputOf(entry: JournalEntry): unknown {
  const { outcome } = entry;
  if (outcome === undefined || !("value" in outcome) || outcome.value === null) return null;
  return isSensitive(entry) ? redacted : shown(outcome.value);
}

/**
 * The result of a step as JSON text, truncated when it is long. The public API has this form in an instance's
 * steps.
 */
function previewOf(entry: JournalEntry): string | null {
  const output = outputOf(entry);
  if (output === null || output === redacted) return output;
  const text = JSON.stringify(output);
  return text.length > previewCharactersMax
    ? `${text.slice(0, previewCharactersMax)}[truncated output]`
    : text;
}

/** Converts a value to its nearest form in JSON. */
export function toJson(value: unknown): unknown {
  switch (typeof value) {
    case "undefined":
      return null;
    case "bigint":
      return value.toString();
    case "number":
      return Number.isFinite(value) ? value : String(value);
    case "object":
      break;
    default:
      return value;
  }
  if (value === null) return null;
  if (Array.isArray(value)) return value.map(toJson);
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString();
  if (value instanceof RegExp) return String(value);
  if (value instanceof Error) return { name: value.name, message: value.message };
  if (value instanceof Map) return [...value].map(([key, each]) => [toJson(key), toJson(each)]);
  if (value instanceof Set) return [...value].map(toJson);
  if (value instanceof ArrayBuffer) return Buffer.from(value).toString("base64");
  if (ArrayBuffer.isView(value))
    return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("base64");
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, toJson(each)]));
}

/** Decodes text of codec.ts to a JSON value. */
export function shown(text: string | null): unknown {
  if (text === null) return null;
  try {
    return toJson(decode(text));
  } catch {
    return "[unreadable]"; // scripts' isolates write these texts, so they may be malformed
  }
}
