import type { CallJournal } from "./journal.ts";

/** Failures of a test besides those of its assertions. The options of the start decide what counts as a failure. */
export interface Checks {
  /** Keeps the failures until now for the next check. */
  collect(): Promise<void>;
  /** Throws an Error that names the failures since the last check. */
  check(): Promise<void>;
}

export function checksOf(
  calls: CallJournal,
  outbound: { failures(): Promise<string[]> },
  refusesUnknown: boolean,
): Checks {
  let pending: string[] = [];
  let seen = 0;
  const collect = async (): Promise<void> => {
    const unknown = refusesUnknown ? await calls.unknown() : [];
    // Numbers start again after a reset.
    if ((unknown.at(-1)?.n ?? 0) < seen) seen = 0;
    const named = unknown.filter(({ n }) => n > seen).map(({ method, path }) => `${method} ${path}`);
    seen = unknown.at(-1)?.n ?? 0;
    if (named.length > 0) pending.push(`Calls of no operation: ${named.join(", ")}`);
    pending.push(...(await outbound.failures()));
  };
  return {
    collect,
    async check() {
      await collect();
      const failures = pending;
      pending = [];
      if (failures.length > 0) throw new Error(failures.join("\n"));
    },
  };
}
