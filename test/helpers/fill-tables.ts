import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import { parentsFirst, type Table } from "../../src/platform/storage/backup/model.ts";

/** The key of the blob that a filled row names, for tables whose rows name blobs. */
export const filledBlob = (table: string, row: number): string => `${table}/row-${row}`;
const blobTables = ["asset_files", "images", "kv_entries"];

/** Puts rows into every table of a SQLite file; returns the keys of the blobs that they name. */
export function fillTables(path: string, tables: readonly Table[], rowsEach: number): string[] {
  const database = new DatabaseSync(path);
  const blobs: string[] = [];
  for (const table of parentsFirst(tables)) {
    const references = database
      .prepare(`select "table", "from", "to" from pragma_foreign_key_list('${table.name}')`)
      .all() as { table: string; from: string; to: string }[];
    const declared = database
      .prepare(`select name from pragma_table_info('${table.name}') where type = 'bigint' or pk > 0`)
      .all();
    const large = new Set(declared.map(({ name }) => name as string));
    const names = table.columns.map(({ name }) => `"${name}"`);
    const insert = database.prepare(
      `insert into "${table.name}" (${names.join(", ")}) values (${names.map(() => "?").join(", ")})`,
    );
    for (let row = 0; row < rowsEach; row++) {
      const blob = filledBlob(table.name, row);
      const values = table.columns.map(({ name, type }, index): SQLInputValue => {
        const reference = references.find(({ from }) => from === name);
        if (reference !== undefined)
          return database
            .prepare(`select "${reference.to}" as value from "${reference.table}" limit 1 offset ${row}`)
            .get()!["value"]!;
        if (name === "blob_key") return blob;
        if (table.name === "images" && name === "content") return JSON.stringify({ blobKey: blob });
        // Numbers of more than 32 bits, where PostgreSQL keeps them.
        if (type === "integer")
          return large.has(name) && name !== "position" ? 10_000_000_000 * (row + 1) + index : row;
        if (type === "bytes") return Buffer.from(Array.from({ length: 300 }, (_, at) => (at + row) % 256));
        return JSON.stringify({ [`${table.name}.${name}`]: `${row} é 漢 \u{1f9f5} "\\ \n\u001f` });
      });
      insert.run(...values);
      if (blobTables.includes(table.name)) blobs.push(blob);
    }
  }
  database.close();
  return blobs;
}
