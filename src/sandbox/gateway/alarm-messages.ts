import type { AlarmNotice, AlarmOutcome } from "../protocol.ts";
import { MalformedError, readObject } from "./cell-messages.ts";
import { isJurisdiction, isObjectName } from "./object-reference.ts";

/** The last time of workerd: 64 bits of nanoseconds since 1970. */
const timeMax = 9_223_372_036_854;

const isWhole = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

/** Parses an object's message about its alarm. Throws a MalformedError. */
export function readAlarmNotice(text: string): AlarmNotice {
  return noticeOf(readObject(text, "the alarm"));
}

function noticeOf({ due, instance, number, name, jurisdiction }: Record<string, unknown>): AlarmNotice {
  if (due !== null && !(isWhole(due) && due > 0 && due <= timeMax))
    throw new MalformedError("Expected milliseconds or null for the time of the alarm.");
  if (!isWhole(instance) || !isWhole(number))
    throw new MalformedError("Expected whole numbers for the instance and the number of the alarm.");
  return {
    due,
    instance,
    number,
    ...(isObjectName(name) && { name }),
    ...(isJurisdiction(jurisdiction) && { jurisdiction }),
  };
}

/** Parses the system worker's answer to an alarm. Throws a MalformedError. */
export function readAlarmOutcome(text: string): AlarmOutcome {
  const given = readObject(text, "the outcome of the alarm");
  const { outcome } = given;
  if (outcome !== "idle" && outcome !== "done" && outcome !== "failed")
    throw new MalformedError("Expected the outcome of the alarm.");
  return { ...noticeOf(given), outcome };
}
