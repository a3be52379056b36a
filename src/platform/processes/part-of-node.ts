import type { OwnProcess } from "./own-process.ts";

/** This process's share of a limit of the node: the main and edge processes have equal shares, of at least `min`. */
export const partOfNode = (
  total: number,
  { role }: OwnProcess,
  { edgeProcesses }: { edgeProcesses: number },
  min = 1,
): number => (role === "single" ? total : Math.max(min, Math.floor(total / (edgeProcesses + 1))));
