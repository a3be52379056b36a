import type { RunOptions } from "../cell.ts";

/** Follows what cells write into the folders of namespaces (platform/object-log). */
export interface CellLog {
  follow(namespaces: readonly string[]): void;
  /** The process with the namespaces is gone. */
  unfollow(namespaces: readonly string[]): void;
  /** An object begins to answer. */
  noteAnswer(namespace: string, id: string): unknown;
  /** Resolves when everything that the object has written is shipped. */
  flush(namespace: string, id: string): Promise<void>;
  /** The data of a namespace was deleted. */
  forget(namespace: string): void;
}

/** An answer whose beginning is passed to the log. */
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
