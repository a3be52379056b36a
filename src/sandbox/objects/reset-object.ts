import type { Logger } from "pino";
import { endsWithin } from "../../platform/util/ends-within.ts";
import type { Cell } from "../cell.ts";
import { connectionLost } from "./faults.ts";
import type { ActingObject } from "./standing.ts";

const attemptsMax = 3;
const exitGraceMs = 1000;

/** The cell of an object, which may end. */
interface Host {
  cell: Pick<Cell, "isDead" | "reset"> & { process: Pick<Cell["process"], "exited"> };
}

/**
 * Ends an object and deletes its data, in its cell; in the next cell if that one ends meanwhile. Rejects as `cellOf` does
 * only if nothing was done.
 */
export async function resetObject(
  cellOf: () => Promise<Host>,
  { namespace, id }: ActingObject,
  logger: Pick<Logger, "warn">,
): Promise<void> {
  const lost = (error: unknown): Error => {
    logger.warn({ err: error, namespace, id }, "a cell did not confirm the deletion of an object");
    return connectionLost();
  };
  for (let attempt = 1; ; attempt++) {
    const { cell } = await cellOf().catch((error: unknown) => {
      throw attempt === 1 ? error : lost(error);
    });
    try {
      return await cell.reset(namespace, { object: id });
    } catch (error) {
      const hasEnded = cell.isDead || (await endsWithin(exitGraceMs, cell.process.exited));
      if (!hasEnded || attempt === attemptsMax) throw lost(error);
    }
  }
}
