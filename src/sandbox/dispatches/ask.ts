import type { Client } from "undici";
import { readUpTo } from "../../platform/util/read-up-to.ts";
import type { CountedDispatches } from "../protocol.ts";
import { protocolLimits } from "../settings.ts";
import { MalformedError, readObject } from "../gateway/cell-messages.ts";

/** The dispatches that a cell has counted since the last call; `runs` are tokens whose targets are asked for. */
export async function askDispatches(cell: Client, runs: readonly string[]): Promise<CountedDispatches> {
  const { body } = await cell.request({ method: "POST", path: "/", body: JSON.stringify(runs) });
  return readDispatches(await readUpTo(body, protocolLimits.controlBytes));
}

const whole = (value: unknown): number =>
  typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? Math.min(value, 1_000_000) : 0;
const faultLengthMax = 120;

/** Parses the system worker's counts of dispatches. */
export function readDispatches(bytes: Buffer): CountedDispatches {
  const { scripts, targets } = readObject(bytes.toString(), "the dispatches");
  if (!Array.isArray(scripts) || !Array.isArray(targets))
    throw new MalformedError("Expected lists for the dispatches.");
  return {
    scripts: scripts.map((each: unknown) => {
      const [id, count] = Array.isArray(each) ? (each as unknown[]) : [];
      const { requests, faults, lastFault } = (count ?? {}) as Record<string, unknown>;
      return [
        typeof id === "string" ? id : "",
        {
          requests: whole(requests),
          faults: whole(faults),
          ...(typeof lastFault === "string" && {
            lastFault: lastFault.slice(0, faultLengthMax).toWellFormed(),
          }),
        },
      ];
    }),
    targets: targets.map((each: unknown) => (typeof each === "string" ? each : "")),
  };
}
