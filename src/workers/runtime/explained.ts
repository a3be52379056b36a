import { CellError } from "../../sandbox/errors.ts";
import type { Thrown } from "../../sandbox/gateway/exchange.ts";
import type { ShowStacks } from "../tail/run-trace.ts";

/**
 * A script's error with its stack mapped to the source. `reportedStack` comes from the isolate, if it has
 * arrived.
 */
export async function explained(
  error: unknown,
  reportedStack: string | undefined,
  shown: ShowStacks,
): Promise<unknown> {
  if (!(error instanceof CellError) || error.kind !== "exception" || error.cause === undefined) return error;
  const thrown = error.cause as Thrown;
  const [stack] = await shown([reportedStack ?? thrown.stack ?? ""]);
  return new CellError("exception", error.message, { cause: { ...thrown, stack: stack || undefined } });
}
