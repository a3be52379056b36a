import type { Table } from "./model.ts";

export type SqlValue = string | number | Uint8Array | null;
export type Row = Record<string, SqlValue>;

/** The line of a row in an archive: a JSON object with the columns in the table's order, and bytes as base64. */
export function rowLine(table: Table, row: Row): string {
  const values: Record<string, unknown> = {};
  for (const { name } of table.columns) {
    const value = row[name]!;
    values[name] = value instanceof Uint8Array ? Buffer.from(value).toString("base64") : value;
  }
  return `${JSON.stringify(values)}\n`;
}

/** The row of a line. */
export function rowOf(table: Table, line: string): Row {
  const row = JSON.parse(line) as Row;
  for (const { name, type } of table.columns)
    if (type === "bytes" && typeof row[name] === "string") row[name] = Buffer.from(row[name], "base64");
  return row;
}

/** The values of a row's key as text, to compare rows. */
export const rowKeyOf = (table: Table, row: Row): string =>
  JSON.stringify(
    table.key.map((name) => {
      const value = row[name]!;
      return value instanceof Uint8Array ? Buffer.from(value).toString("base64") : value;
    }),
  );

/** Tables whose rows name blobs, and how to read the blob's key. Every other blob is a leftover of a crash. */
const blobReferences: Record<string, (row: Row) => string | null> = {
  asset_files: (row) => row["blob_key"] as string,
  images: ({ content }) =>
    content === null ? null : (JSON.parse(content as string) as { blobKey: string }).blobKey,
  kv_entries: (row) => row["blob_key"] as string | null,
};

export const namesBlobs = (table: Table): boolean => table.name in blobReferences;
export const blobOf = (table: Table, row: Row): string | null => blobReferences[table.name]?.(row) ?? null;
