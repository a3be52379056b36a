import { z } from "zod";
import type { CellsUnderTest } from "../../sandbox/tested-cells.ts";
import { routeWithBody, type ControlRoute } from "../control.ts";
import type { TestedInvocations } from "../../products/workflows/cells/tested-invocations.ts";
import { scriptOf } from "../faults/cell-faults.ts";

/** The processes that run code of accounts. */
export interface KilledCells {
  scripts: CellsUnderTest;
  workflows: Pick<TestedInvocations, "kill"> | undefined;
  objects: { readonly pids: readonly number[] };
}

/** The route that kills processes of scripts. */
export const cellRoutes = ({ scripts, workflows, objects }: KilledCells): ControlRoute[] => [
  routeWithBody({
    method: "POST",
    path: "/cells/kill",
    summary: "Kills the processes that run a script and its workflows, or all",
    body: z.strictObject({ script: z.string().max(100).optional() }),
    async handle(_request, { script }) {
      const isHit = (owner: string): boolean => script === undefined || scriptOf(owner)?.script === script;
      let killed = scripts.all.reduce((sum, each) => sum + each.kill(isHit), workflows?.kill(script) ?? 0);
      for (const pid of script === undefined ? objects.pids : []) {
        process.kill(pid, "SIGKILL");
        killed++;
      }
      return { killed };
    },
  }),
];
