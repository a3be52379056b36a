import { constants, DatabaseSync, type SQLOutputValue } from "node:sqlite";
import { pathToFileURL } from "node:url";
import { queryLimits, type QueryJob, type QueryReply, type QueryResult } from "./job.ts";

/*
 * A process for one query of a customer's database. SQLite in Node can neither be interrupted nor limited in time, so the
 * parent ends the process.
 */
process.on("message", (job: QueryJob) => {
  const reply: QueryReply = answer(job);
  process.send?.(reply, () => process.exit(0));
});
process.on("disconnect", () => process.exit(0));

function answer(job: QueryJob): QueryReply {
  try {
    return { result: JSON.stringify(run(job)) };
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) };
  }
}

function run({ file, isClosed, sql, params }: QueryJob): QueryResult {
  const url = pathToFileURL(file);
  if (isClosed) url.searchParams.set("immutable", "1");
  const database = new DatabaseSync(url, {
    readOnly: true,
    timeout: 1000,
    limits: { length: queryLimits.valueBytes },
  });
  try {
    database.exec("PRAGMA temp_store = MEMORY");
    database.setAuthorizer(authorize);
    const statement = database.prepare(sql);
    if (sql.slice(statement.sourceSQL.length).trim() !== "")
      throw new Error("Expected one statement, and nothing after it.");
    statement.setReadBigInts(true);
    statement.setReturnArrays(true);
    const columns = statement.columns().map(({ name }) => name);
    if (columns.length === 0) throw new Error("Expected a SELECT statement.");
    const rows: unknown[][] = [];
    let characters = 0;
    for (const row of statement.iterate(...params) as Iterable<unknown>) {
      const shown = (row as SQLOutputValue[]).map(shownValue);
      characters += JSON.stringify(shown).length;
      if (rows.length >= queryLimits.rowsMax || characters > queryLimits.charactersMax)
        return { columns, rows, truncated: true };
      rows.push(shown);
    }
    return { columns, rows, truncated: false };
  } finally {
    database.close();
  }
}

function shownValue(value: SQLOutputValue): unknown {
  if (value instanceof Uint8Array) return [...value];
  if (typeof value !== "bigint") return value;
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : String(value);
}

const readable: ReadonlySet<number> = new Set([
  constants.SQLITE_SELECT,
  constants.SQLITE_READ,
  constants.SQLITE_RECURSIVE,
  constants.SQLITE_FUNCTION,
]);
const pragmas: ReadonlySet<unknown> = new Set([
  "data_version", // asked by tables of FTS5
  "foreign_key_list",
  "index_info",
  "index_list",
  "index_xinfo",
  "table_info",
  "table_list",
  "table_xinfo",
]);

/** Allows reading only. Tables of workerd itself, as to scripts, are not shown. */
function authorize(action: number, first: string | null, second: string | null): number {
  if (action === constants.SQLITE_PRAGMA)
    return pragmas.has(first) ? constants.SQLITE_OK : constants.SQLITE_DENY;
  if (!readable.has(action)) return constants.SQLITE_DENY;
  if (action === constants.SQLITE_FUNCTION && second === "load_extension") return constants.SQLITE_DENY;
  return action === constants.SQLITE_READ && first?.toLowerCase().startsWith("_cf_") === true
    ? constants.SQLITE_DENY
    : constants.SQLITE_OK;
}
