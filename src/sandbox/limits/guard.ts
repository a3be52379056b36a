import type { Cell } from "../cell.ts";
import type { FaultKind } from "../errors.ts";
import { CpuLimiter } from "./cpu-limiter.ts";
import type { DedicatedWatch } from "./watch.ts";

const checkEveryMs = 2;

/**
 * Checks the limits every few milliseconds, with a CPU limiter for exactness, until the returned function is
 * called. Kills the cell at the first fault.
 */
export function guard(
  cell: Cell,
  watch: DedicatedWatch,
  onFault: (fault: FaultKind) => void = () => {},
): () => void {
  const limiter = CpuLimiter.on(cell.process.pid, watch.endCpuMs);
  const check = (): void => {
    const fault = watch.check();
    if (fault !== undefined) {
      onFault(fault);
      cell.die(fault);
      return;
    }
    limiter?.moveTo(watch.endCpuMs);
    timer = setTimeout(check, checkEveryMs);
  };
  let timer = setTimeout(check, checkEveryMs);
  return () => {
    clearTimeout(timer);
    limiter?.release();
  };
}
