import { CellError } from "../../sandbox/errors.ts";
import { parseBounded } from "../../platform/util/bounded-json.ts";

/** Parses the answer of an event's wrapper, which runs among the script's own code. */
export function answerOf(text: string, event: string): unknown {
  try {
    return parseBounded(text);
  } catch {
    throw new CellError("exception", `The answer of the ${event} handler is invalid.`);
  }
}
