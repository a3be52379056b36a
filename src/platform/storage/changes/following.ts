/** A node's position in the log of changes. */
export interface Following {
  /** The highest number of a change that is in effect at this node. */
  readonly seq: number;
  /** All changes up to this number are in effect at this node. */
  readonly takenOver: number;
  /** The highest number that this node knows of, on any node. */
  readonly headSeq: number;
  /** Whether notifications of other nodes arrive, so that the node does not have to read the log often. */
  readonly isNotified: boolean;
  /** Full reloads since the start, because rows of the log were missing or differed from those read before. */
  readonly reloads: Readonly<Record<"missing" | "rewritten", number>>;
  /** Resolves with true once all changes up to this number are in effect, or with false after `timeoutMs`. */
  reaches(seq: number, timeoutMs: number): Promise<boolean>;
}
