import { z } from "zod";
import type { CellsUnderTest } from "../../sandbox/tested-cells.ts";
import { routeWithBody, type ControlRoute } from "../control.ts";
import type { TestedInvocations } from "../../products/workflows/cells/tested-invocations.ts";
import { scriptOfRun } from "../faults/cell-faults.ts";

/** The processes that run code of accounts. */
export interface KilledCells {
  scripts: CellsUnderTest;
  workflows: Pick<TestedInvocations, "processesOf"> | undefined;
  objects: { readonly pids: readonly number[] };
}

/** The route that kills or stops processes of scripts. */
export const cellRoutes = ({ scripts, workflows, objects }: KilledCells): ControlRoute[] => [
  routeWithBody({
    method: "POST",
    path: "/cells/kill",
    summary:
      "Kills (or, with the signal STOP, stops) the processes that run a script and its workflows, or all",
    body: z.strictObject({
      script: z.string().max(100).optional(),
      signal: z.enum(["KILL", "STOP"]).default("KILL"),
    }),
    async handle(_request, { script, signal }) {
      const isHit = (owner: string): boolean => script === undefined || scriptOfRun(owner)?.script === script;
      const hit = new Set([
        ...scripts.all.flatMap((each) => each.processesOf(isHit)),
        ...(workflows?.processesOf(script) ?? []),
        ...(script === undefined ? objects.pids : []),
      ]);
      return { killed: [...hit].filter((pid) => wasSent(pid, `SIG${signal}`)).length };
    },
  }),
];

/** Whether the process was still there. */
function wasSent(pid: number, signal: NodeJS.Signals): boolean {
  try {
    return pid > 0 && process.kill(pid, signal);
  } catch {
    return false;
  }
}
