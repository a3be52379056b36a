import type { Logger } from "pino";
import type { RunOptions } from "../cell.ts";
import type { ObjectCellsOptions } from "./object-cells-options.ts";
import type { Gate } from "../connections/held-socket.ts";

/** Follows the writes of cells to the folders of namespaces (platform/object-log). */
export interface CellLog {
  follow(namespaces: readonly string[]): void;
  /** The process with the namespaces is gone. */
  unfollow(namespaces: readonly string[]): void;
  /** An object begins to answer. */
  noteAnswer(namespace: string, id: string): unknown;
  /** Resolves when all writes to the namespaces are shipped. Rejects when that takes too long. */
  whenShipped(namespaces: ReadonlySet<string>): Promise<void>;
  /** The data of a namespace was deleted. */
  forget(namespace: string): void;
}

/**
 * Where everything waits that a cell with these namespaces sends: until its writes are shipped, if they are shipped first,
 * and until it is sure that no other node runs its objects. Undefined if nothing waits.
 */
export function gateOf(
  { log, isShippedFirst, ownership }: Pick<ObjectCellsOptions, "log" | "isShippedFirst" | "ownership">,
  namespaces: readonly string[],
  onFailure: (error: unknown) => void,
): Gate | undefined {
  const own = new Set(namespaces);
  const first = isShippedFirst === true ? log : undefined;
  if (first === undefined && ownership === undefined) return undefined;
  const lease = ownership?.lease;
  return async () => {
    try {
      await first?.whenShipped(own);
      // Without a lease at its start, a cell sends nothing.
      if (ownership !== undefined && (lease === undefined || ownership.lease !== lease))
        throw new Error("The lease of this node on its objects has ended");
    } catch (error) {
      onFailure(error);
      throw error;
    }
  };
}

/** Wraps an answer, so that the log is notified when the object begins to answer. */
export function notedAnswer(
  log: CellLog | undefined,
  { namespace, id }: { namespace: string; id: string },
  answer: RunOptions["answer"],
): RunOptions["answer"] {
  if (log === undefined) return answer;
  const headers = (raw: readonly string[], status: number): string[] => {
    log.noteAnswer(namespace, id);
    return answer.headers(raw, status);
  };
  return { ...answer, headers };
}

/** Resolves when a cell has ended, also if its last writes cannot be read: then its place is free all the same. */
export const afterEnd = async (ended: Promise<void>, logger: Pick<Logger, "error">): Promise<void> =>
  ended.catch((error: unknown) =>
    logger.error({ err: error }, "the last writes of a cell of objects could not be read"),
  );
