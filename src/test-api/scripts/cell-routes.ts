import { z } from "zod";
import type { CellsUnderTest } from "../../sandbox/tested-cells.ts";
import type { ControlRoute } from "../control.ts";
import { scriptOf } from "../faults/cell-faults.ts";

/** The route that kills processes of scripts. */
export const cellRoutes = (cells: CellsUnderTest): ControlRoute[] => [
  {
    method: "POST",
    path: "/cells/kill",
    summary: "Kills the processes that run a script, or all that run one",
    async handle(request) {
      const { script } = await request.body(z.strictObject({ script: z.string().max(100).optional() }));
      const isHit = (owner: string): boolean => script === undefined || scriptOf(owner)?.script === script;
      return { killed: cells.all.reduce((sum, each) => sum + each.kill(isHit), 0) };
    },
  },
];
