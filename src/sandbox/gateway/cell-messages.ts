import { parseBounded } from "../../platform/util/bounded-json.ts";
import { Refusal } from "../errors.ts";
import type { Thrown } from "./exchange.ts";
import { errorLengths } from "../worker/thrown.ts";

/*
 * Parses what cells send besides HTTP itself. All of it is hostile input: scripts may have replaced
 * everything in their isolate, and a script that escaped from V8 controls the whole cell, with the secret of
 * the system worker.
 */

/** A message of a cell is not as expected. The text may be shown to scripts. */
export class MalformedError extends Refusal {}

/** A dispatch inside a cell. The system worker sends it with the first request of the dispatched script. */
export interface Child {
  /** Tokens of the dispatched run, and of the run that dispatched. */
  child: string;
  run: string;
  binding: string;
  options: string;
  outbound: string;
  /** Id of the dispatched script. */
  id: string;
}

/** Decodes a percent-encoded header. Throws a MalformedError if it is absent or malformed. */
export function headerText(name: string, value: string | string[] | undefined): string {
  try {
    if (typeof value === "string") return decodeURIComponent(value);
  } catch {
    // malformed
  }
  throw new MalformedError(`Expected percent-encoded text for ${name}.`);
}

/** Parses JSON that must be an object. Throws a MalformedError that names `what`. */
export function readObject(text: string, what: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = parseBounded(text);
  } catch {
    // malformed
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value))
    return value as Record<string, unknown>;
  throw new MalformedError(`Expected a JSON object for ${what}.`);
}

export function readChild(text: string): Child {
  const given = readObject(text, "the dispatch");
  const part = (name: keyof Child): string => {
    const value = given[name];
    if (typeof value === "string") return value;
    throw new MalformedError(`Expected text for ${name} of the dispatch.`);
  };
  return {
    child: part("child"),
    run: part("run"),
    binding: part("binding"),
    options: part("options"),
    outbound: part("outbound"),
    id: part("id"),
  };
}

/** Parses the system worker's list of loaded scripts. */
export function readIds(bytes: Buffer): Set<string> {
  let given: unknown;
  try {
    given = parseBounded(bytes.toString());
  } catch {
    // malformed
  }
  if (Array.isArray(given) && given.every((id) => typeof id === "string")) return new Set(given);
  throw new MalformedError("Expected a list of scripts.");
}

/** Makes an error of any value, with well-formed text of a bounded length. */
export function readThrown(value: unknown): Thrown {
  const given = (value ?? {}) as Record<string, unknown>;
  const text = (name: "name" | "message" | "stack", otherwise: string): string => {
    const each = given[name];
    return typeof each === "string" ? each.slice(0, errorLengths[name]).toWellFormed() : otherwise;
  };
  return {
    name: text("name", "Error"),
    message: text("message", "the script threw something that cannot be shown"),
    stack: text("stack", "") || undefined,
  };
}

export function parseThrown(bytes: Buffer): Thrown {
  try {
    return readThrown(parseBounded(bytes.toString()));
  } catch {
    return { name: "Error", message: "the script threw something very large", stack: undefined };
  }
}
