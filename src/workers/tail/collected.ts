import { readObject } from "../../sandbox/gateway/cell-messages.ts";
import { errorLengths } from "../../sandbox/worker/thrown.ts";
import type { TailException, TailLog } from "./event.ts";

/** A run's logs, and exceptions after its answer, as reported from its isolate. */
export interface Collected {
  logs: TailLog[];
  exceptions: TailException[];
  truncated: boolean;
}

export const nothing: Collected = { logs: [], exceptions: [], truncated: false };

const logsMax = 10_000;
const exceptionsMax = 100;
const levelLengthMax = 16;

/**
 * Parses the report of worker/console.ts. It comes from among the script's own code: malformed entries are
 * dropped.
 */
export function readCollected(text: string): Collected {
  const given = readObject(text, "what was logged");
  const logs = listOf(given["logs"], logsMax);
  const exceptions = listOf(given["exceptions"], exceptionsMax);
  return {
    logs: logs.flatMap(({ level, message, timestamp }) =>
      typeof level === "string" && Array.isArray(message) && isTime(timestamp)
        ? [{ level: level.slice(0, levelLengthMax), message: message as unknown[], timestamp }]
        : [],
    ),
    exceptions: exceptions.flatMap(({ name, message, stack, timestamp }) =>
      typeof name === "string" && typeof message === "string" && isTime(timestamp)
        ? [
            {
              name: name.slice(0, errorLengths.name),
              message: message.slice(0, errorLengths.message),
              ...(typeof stack === "string" ? { stack: stack.slice(0, errorLengths.stack) } : {}),
              timestamp,
            },
          ]
        : [],
    ),
    truncated: given["truncated"] === true,
  };
}

const isTime = (value: unknown): value is number => typeof value === "number";

const listOf = (value: unknown, countMax: number): Record<string, unknown>[] =>
  Array.isArray(value) ? value.slice(0, countMax).filter(isRecord) : [];
const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null;
