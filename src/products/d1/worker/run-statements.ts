import { isRead } from "./is-read.ts";
import { jsonBytes } from "./json-bytes.ts";

/* Runs statements in the storage of a database's object, with the results and figures that D1 shows. */

export interface Statement {
  sql: string;
  params?: readonly unknown[];
}

/** How rows are returned: as arrays, or as objects. */
export type Format = "ROWS_AND_COLUMNS" | "ARRAY_OF_OBJECTS";

interface Meta {
  served_by: string;
  served_by_region: string;
  served_by_primary: true;
  timings: { sql_duration_ms: number };
  duration: number;
  changes: number;
  last_row_id: number;
  changed_db: boolean;
  size_after: number;
  rows_read: number;
  rows_written: number;
  total_attempts: 1;
}

export interface Result {
  success: true;
  meta: Meta;
  results: unknown;
}

/** Approximate memory limit of a response, because other databases share the process. */
const answerBytesMax = 32 * 1024 * 1024;
const tooLarge = `The rows of the answer take more than ${answerBytesMax / 1024 / 1024} MiB. Select fewer of them, for example with LIMIT.`;
/** The public limit of a text or blob; workerd's is 4 MiB. */
const valueBytesMax = 2_000_000;
const tooBig = "string or blob too big: SQLITE_TOOBIG";
/** The bytes of a value, a row and a statement besides their text. */
const overheadBytes = { value: 24, row: 64, statement: 512 };
/** Maximum number of statements in a call. */
const statementsMax = 10_000;

/** Counts the bytes of a response, over all statements of a call. */
interface Budget {
  bytes: number;
}

/** Figures of the connection and of the database, after a statement. */
export interface ConnectionFigures {
  changes: number;
  rowId: number;
  bytes: number;
}

const notEmpty = ({ sql }: Statement): boolean => sql.split("\n").some((line) => !/^\s*(--|$)/.test(line));

/**
 * Runs the statements of a transaction. `known` are the figures before it, if they are known. Returns the results, whether
 * anything was written, and the figures afterwards. Throws workerd's errors, whose texts are the public ones.
 */
export function runStatements(
  sql: SqlStorage,
  statements: readonly Statement[],
  format: Format,
  known?: ConnectionFigures,
): { results: Result[]; hasWritten: boolean; after: ConnectionFigures } {
  const asked = statements.filter(notEmpty);
  if (asked.length === 0) throw new Error("No SQL statements detected.");
  if (asked.length > statementsMax)
    throw new Error(`A call takes at most ${statementsMax} statements, and this one has ${asked.length}.`);
  const budget: Budget = { bytes: asked.length * overheadBytes.statement };
  let before = known ?? figuresOf(sql);
  const results = asked.map((each) => {
    const [result, after] = runOne(sql, each, { format, budget, before });
    before = after;
    return result;
  });
  return { results, hasWritten: results.some(({ meta }) => meta.changed_db), after: before };
}

function runOne(
  sql: SqlStorage,
  { sql: text, params = [] }: Statement,
  { format, budget, before }: { format: Format; budget: Budget; before: ConnectionFigures },
): [Result, ConnectionFigures] {
  const begin = performance.now();
  const cursor = sql.exec(text, ...params.map(valueOf));
  const results = readRows(cursor, format, budget);
  const duration = performance.now() - begin;
  const { rowsRead, rowsWritten } = cursor;
  const after = isRead(text) ? before : figuresOf(sql);
  const result: Result = {
    success: true,
    meta: {
      served_by: "selvedge",
      served_by_region: "",
      served_by_primary: true,
      timings: { sql_duration_ms: duration },
      duration,
      changes: after.changes - before.changes,
      last_row_id: after.rowId,
      changed_db: after.changes !== before.changes || rowsWritten > 0 || after.bytes !== before.bytes,
      size_after: after.bytes,
      rows_read: rowsRead,
      rows_written: rowsWritten,
      total_attempts: 1,
    },
    results,
  };
  return [result, after];
}

function figuresOf(sql: SqlStorage): ConnectionFigures {
  const [row] = sql.exec("SELECT total_changes(), last_insert_rowid()").raw<[number, number]>();
  const [changes, rowId] = row!;
  return { changes, rowId, bytes: sql.databaseSize };
}

function readRows(
  cursor: SqlStorageCursor<Record<string, SqlStorageValue>>,
  format: Format,
  budget: Budget,
): unknown {
  const columns = cursor.columnNames;
  const rows: unknown[][] = [];
  const nameBytes =
    format === "ARRAY_OF_OBJECTS" ? columns.reduce((sum, name) => sum + jsonBytes(name), 0) : 0;
  for (const row of cursor.raw()) {
    const shown = row.map((value) => {
      budget.bytes += bytesOf(value);
      return shownValue(value);
    });
    budget.bytes += overheadBytes.row + nameBytes;
    if (budget.bytes > answerBytesMax) throw new Error(tooLarge);
    rows.push(shown);
  }
  if (format === "ROWS_AND_COLUMNS") return { columns, rows };
  return rows.map((row) => Object.fromEntries(row.map((value, i) => [columns[i], value])));
}

/** Bytes of the value's JSON, or a little more. */
function bytesOf(value: SqlStorageValue): number {
  checkLength(value);
  if (typeof value === "string") return jsonBytes(value) + overheadBytes.value;
  return (value instanceof ArrayBuffer ? 4 * value.byteLength : 0) + overheadBytes.value;
}

/** Throws if a text or blob is too large. */
function checkLength(value: SqlStorageValue): void {
  if (typeof value === "string") {
    const mayExceed = value.length > valueBytesMax / 3;
    if (mayExceed && new TextEncoder().encode(value).length > valueBytesMax) throw new Error(tooBig);
  } else if (value instanceof ArrayBuffer && value.byteLength > valueBytesMax) throw new Error(tooBig);
}

/** Blobs are arrays of numbers in both directions. */
const shownValue = (value: SqlStorageValue): unknown =>
  value instanceof ArrayBuffer ? Array.from(new Uint8Array(value)) : value;

function valueOf(value: unknown): SqlStorageValue {
  if (typeof value === "boolean") return value ? 1 : 0;
  const given = Array.isArray(value) ? new Uint8Array(value as number[]).buffer : value;
  if (given === null || typeof given === "number") return given;
  if (typeof given === "string" || given instanceof ArrayBuffer) {
    checkLength(given);
    return given;
  }
  throw new Error(`Type '${typeof value}' not supported for value '${JSON.stringify(value)}'`);
}
