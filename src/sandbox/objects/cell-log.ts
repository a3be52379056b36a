import type { RunOptions } from "../cell.ts";
import type { Gate } from "../gateway/held-socket.ts";

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

/** A gate that holds all bytes from a cell with these namespaces until the cell's writes are shipped. */
export function gateOf(
  log: CellLog,
  namespaces: readonly string[],
  onFailure: (error: unknown) => void,
): Gate {
  const own = new Set(namespaces);
  return async () => {
    try {
      await log.whenShipped(own);
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
