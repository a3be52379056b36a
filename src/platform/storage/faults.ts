/** The database is unreachable or does not respond. A write in progress may have succeeded. */
export class DatabaseUnavailable extends Error {
  constructor(cause: unknown) {
    super("The database is not available", { cause });
  }
}

/** The store of blobs is unreachable or does not respond. A write in progress may have succeeded. */
export class BlobsUnavailable extends Error {
  constructor(cause: unknown) {
    super("The store of blobs is not available", { cause });
  }
}

/** Content is missing although a row names its key. */
export class BlobMissing extends Error {
  constructor(key: string) {
    super(`the blob ${key} is missing`);
  }
}

/** Content is too large for the store of blobs. */
export class BlobTooLarge extends Error {
  readonly bytesMax: number;

  constructor(bytesMax: number) {
    super(`Expected a blob of at most ${bytesMax} bytes`);
    this.bytesMax = bytesMax;
  }
}

/** The database cannot be used as it is. The message tells the operator what to do. */
export class UnusableDatabase extends Error {}

/** Yields an error and then its causes, from outer to inner. */
function* causes(error: unknown): Generator<Error & { code?: unknown; errcode?: unknown }, void> {
  for (let next = error, depth = 0; next instanceof Error && depth < 5; next = next.cause, depth++)
    yield next;
}

const fullCodes: ReadonlySet<unknown> = new Set(["ENOSPC", "EDQUOT", "53100"]);
/** The codes SQLITE_FULL and SQLITE_IOERR_SHMSIZE (the index of the log cannot grow). */
const fullErrcodes: ReadonlySet<unknown> = new Set([13, 4874]);

/** Whether a write failed for lack of space, in a file, in SQLite or in PostgreSQL. */
export function isDiskFull(error: unknown): boolean {
  return causes(error).some(({ code, errcode }) => fullCodes.has(code) || fullErrcodes.has(errcode));
}

/** Whether the database refused a transaction for lack of space, so that nothing of it is kept. */
export const isRefusedForSpace = (error: unknown): boolean =>
  causes(error).some(({ code, errcode }) => code === "53100" || fullErrcodes.has(errcode));

/** SQLite: busy, locked, read-only, a failed read or write, a file that cannot be opened. */
const unavailableErrcodes: ReadonlySet<number> = new Set([5, 6, 8, 10, 14]);
/** PostgreSQL: serialization failure, deadlock, and lock not available. */
const conflictCodes: ReadonlySet<unknown> = new Set(["40001", "40P01", "55P03"]);

/** Whether the database failed for a temporary reason. */
export function isUnavailable(error: unknown): boolean {
  if (isDiskFull(error)) return false;
  return causes(error).some(
    (each) =>
      each instanceof DatabaseUnavailable ||
      conflictCodes.has(each.code) ||
      (typeof each.errcode === "number" && unavailableErrcodes.has(each.errcode & 0xff)),
  );
}

/** Whether the store of blobs failed for a temporary reason. */
export const isBlobsUnavailable = (error: unknown): boolean =>
  causes(error).some((each) => each instanceof BlobsUnavailable);
