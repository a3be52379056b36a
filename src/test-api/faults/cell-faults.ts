import { z } from "zod";
import type { CellsUnderTest } from "../../sandbox/tested-cells.ts";
import { milliseconds, selection, type FaultRules } from "./fault-rules.ts";

/** A fault of the processes that run scripts. */
export const CellsFaultSchema = z.strictObject({
  script: z.string().max(100).optional(),
  ...selection,
  then: z.union([z.enum(["crash", "cpu", "memory"]), z.strictObject({ startMs: milliseconds })]),
});
export type CellsFault = z.output<typeof CellsFaultSchema>;

/** The account and the name of the script that owns a run; undefined for snippets. */
export function scriptOfRun(owner: string): { accountId: string; script: string } | undefined {
  const [, accountId, script] = /^script ([^/]*)\/[^/]*\/(\S+) /.exec(owner) ?? [];
  return script === undefined ? undefined : { accountId: accountId!, script };
}

/** Applies faults to runs of scripts. */
export const cellFaults =
  (faults: FaultRules<CellsFault>): NonNullable<CellsUnderTest["faultFor"]> =>
  ({ owner }) => {
    if (faults.isEmpty) return undefined;
    const name = scriptOfRun(owner)?.script;
    return faults.apply(({ script }) => script === undefined || script === name)?.fault.then;
  };
