import { isoTime } from "../util/ids.ts";
import type { InstanceError, InstanceRow, StepError } from "./instance.ts";
import { entryName, type Attempt, type Entry, type History } from "./journal.ts";
import { decode } from "./worker/codec.ts";
import type { StepConfig } from "./worker/step-config.ts";

/** An instance's steps as the API shows them. */
const previewCharactersMax = 1024;
const redacted = "[REDACTED]";

export type TimelineStep =
  | {
      type: "step" | "rollback";
      name: string;
      start: string;
      end: string | null;
      success: boolean | null;
      output: unknown;
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
      output: unknown;
      error: ShownError | null;
    }
  | { type: "termination"; trigger: { source: string } };

export interface ShownError {
  name: string;
  message: string;
}

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

export function timeline(row: InstanceRow, history: History): TimelineStep[] {
  const steps = [...history.entries.values()].map((entry) => stepOf(entry, row));
  if (row.status === "terminated") steps.push({ type: "termination", trigger: { source: "api" } });
  return steps;
}

function stepOf(entry: Entry, row: InstanceRow): TimelineStep {
  const name = entryName(entry.key);
  const start = isoTime(entry.startedOn);
  const error =
    entry.outcome !== undefined && "error" in entry.outcome ? shownError(entry.outcome.error) : null;
  const end = entry.endedOn ?? entry.due ?? row.modifiedOn;
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
        output: outputOf(entry, previewCharactersMax),
        error,
      };
    case "do":
    case "rollback":
      return {
        type: entry.kind === "do" ? "step" : "rollback",
        name,
        start,
        end: entry.endedOn === null ? null : isoTime(entry.endedOn),
        success: entry.outcome === undefined ? null : error === null,
        output: outputOf(entry, previewCharactersMax),
        error,
        config: configOf(entry),
        attempts: entry.attempts.map(attemptOf),
      };
  }
}

function attemptOf({ startedOn, endedOn, error }: Attempt): {
  start: string;
  end: string | null;
  success: boolean | null;
  error: ShownError | null;
} {
  return {
    start: isoTime(startedOn),
    end: endedOn === null ? null : isoTime(endedOn),
    success: endedOn === null ? null : error === null,
    error: shownError(error),
  };
}

const configOf = ({ config }: Entry): object => (config === null ? {} : (JSON.parse(config) as StepConfig));
const isSensitive = (entry: Entry): boolean =>
  (configOf(entry) as Partial<StepConfig>).sensitive === "output";

/** A step's result as JSON has it; cut where it is long. */
export function outputOf(entry: Entry, charactersMax = Number.POSITIVE_INFINITY): unknown {
  const { outcome } = entry;
  if (outcome === undefined || !("value" in outcome) || outcome.value === null) return null;
  if (isSensitive(entry)) return redacted;
  const value = shown(outcome.value);
  const text = JSON.stringify(value);
  return text.length > charactersMax ? `${text.slice(0, charactersMax)}[truncated output]` : value;
}

/** What JSON has no form for becomes the nearest thing that it has. */
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

/** The text of codec.ts, as JSON has it. */
export function shown(text: string | null): unknown {
  if (text === null) return null;
  try {
    return toJson(decode(text));
  } catch {
    return "[unreadable]"; // it came from a script's isolate, which may have written anything
  }
}
