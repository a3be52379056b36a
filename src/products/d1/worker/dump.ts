/* Writes the content of a database as SQL text. */

export interface DumpOptions {
  no_schema?: boolean;
  no_data?: boolean;
  /** The tables to write; all if empty. */
  tables?: readonly string[];
}

interface SchemaObject {
  type: string;
  name: string;
  tbl_name: string;
  sql: string;
}

const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`;
/** Approximate length of the pieces that are sent. */
const pieceLength = 64 * 1024;

/**
 * The lines of a dump, as the public service writes them: tables with their rows, then indexes, triggers and views.
 * Throws for virtual tables, whose content SQL cannot restore.
 */
export function* dump(sql: SqlStorage, options: DumpOptions): Generator<string, void> {
  const { no_schema = false, no_data = false, tables = [] } = options;
  const isAsked = (name: string): boolean => tables.length === 0 || tables.includes(name);
  const all = sql
    .exec("SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid")
    .toArray() as unknown as SchemaObject[];
  const entries = all.filter(({ name, tbl_name }) => !name.startsWith("_cf_") && isAsked(tbl_name));
  const virtual = entries.find((entry) => /^CREATE\s+VIRTUAL\s/i.test(entry.sql));
  if (virtual !== undefined)
    throw new Error("D1 Export error: cannot export databases with Virtual Tables (fts5)");
  yield "PRAGMA defer_foreign_keys=TRUE;\n";
  for (const { type, name, sql: text } of entries) {
    if (type !== "table") continue;
    if (name === "sqlite_sequence") {
      if (!no_data) yield "DELETE FROM sqlite_sequence;\n";
    } else if (name.startsWith("sqlite_")) continue;
    else if (!no_schema)
      yield `${text.replace(/^CREATE\s+TABLE\s+(?!IF\s)/i, "CREATE TABLE IF NOT EXISTS ")};\n`;
    if (!no_data) yield* rowsOf(sql, name);
  }
  if (!no_schema) for (const { type, sql: text } of entries) if (type !== "table") yield `${text};\n`;
}

function* rowsOf(sql: SqlStorage, table: string): Generator<string, void> {
  const columns = sql
    .exec(`SELECT name FROM pragma_table_xinfo(?) WHERE hidden = 0`, table)
    .toArray()
    .map(({ name }) => quoted(name as string));
  if (columns.length === 0) return;
  const shown = columns.map((name) => `quote(${name})`);
  const into = `INSERT INTO ${quoted(table)} (${columns.join(",")}) VALUES(`;
  // SQLite writes numbers, texts and blobs as literals that it reads back unchanged.
  const rows = sql.exec(`SELECT ${shown.join(", ")} FROM ${quoted(table)}`).raw();
  for (const row of rows) yield `${into}${row.join(",")});\n`;
}

/** The dump as a response body. Each piece is made only after the previous one was read. */
export function dumpBody(lines: Iterator<string, void>, ended: () => void): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return new ReadableStream<Uint8Array>({
    pull(controller) {
      try {
        let text = "";
        while (text.length < pieceLength) {
          const { done, value } = lines.next();
          if (done === true) {
            if (text !== "") controller.enqueue(encoder.encode(text));
            controller.close();
            ended();
            return;
          }
          text += value;
        }
        controller.enqueue(encoder.encode(text));
      } catch (error) {
        ended();
        controller.error(error);
      }
    },
    cancel: ended,
  });
}
