export type BlobOperation = "put" | "get" | "head" | "delete" | "list";
type Result = "ok" | "missing" | "unavailable" | "failed";

/** The counts of blobs in the metrics. */
export class BlobCounts {
  readonly store: "files" | "s3" | "postgres";
  /** By operation and result. */
  readonly operations = new Map<`${BlobOperation} ${Result}`, number>();
  readonly cache = { hit: 0, miss: 0 };
  /** Reads of content that a row names and the store does not have. */
  missing = 0;
  /** Downloads whose content differed from its digest. */
  damaged = 0;
  cacheBytes = (): number => 0;
  /** Called after each operation with its time. */
  onOperation: ((operation: BlobOperation, seconds: number) => void) | undefined;

  constructor(store: "files" | "s3" | "postgres") {
    this.store = store;
  }

  /** `startMs` is the time of the operation's start, by `performance.now()`. */
  note(operation: BlobOperation, result: Result, startMs: number): void {
    const name = `${operation} ${result}` as const;
    this.operations.set(name, (this.operations.get(name) ?? 0) + 1);
    this.onOperation?.(operation, (performance.now() - startMs) / 1000);
  }
}
