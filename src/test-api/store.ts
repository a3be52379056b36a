import { createHash } from "node:crypto";
import { sql } from "kysely";
import type { Read } from "../platform/storage/storage.ts";
import { TestFault } from "./test-fault.ts";

/** Tables that are left out: of the node, of backups and of the database itself. */
const inner = /^(?:meta|changes|change_head|nodes|node_rates|blob_place|kysely_|sqlite_)/;
/** Columns that are left out: times, and values that differ between two installations with the same content. */
const varying = /_on$|^(?:serial|rid|number|pepper|secret|sealed|.*_hash|.*_key)$/;

/** All rows by table, sorted, without times and secrets: the same for the same content. */
export async function canonicalState(
  read: Read,
  wanted?: readonly string[],
): Promise<Record<string, object[]>> {
  const tables = await read.introspection.getTables();
  const shownTables = tables.map(({ name }) => name).filter((name) => !inner.test(name));
  const unknown = wanted?.find((name) => !shownTables.includes(name));
  if (unknown !== undefined)
    throw new TestFault(
      400,
      `Expected tables of ${shownTables.toSorted().join(", ")} but received ${JSON.stringify(unknown)}`,
    );
  const state: Record<string, object[]> = {};
  for (const { name } of tables.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
    if (inner.test(name) || wanted?.includes(name) === false) continue;
    const { rows } = await sql<Record<string, unknown>>`select * from ${sql.table(name)}`.execute(read);
    const shown = rows.map(shownRow).sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
    if (shown.length > 0) state[name] = shown;
  }
  return state;
}

function shownRow(row: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(row)
      .filter(([column]) => !varying.test(column))
      .map(([column, value]) => [column, shownValue(value)]),
  );
}

const shownValue = (value: unknown): unknown =>
  value instanceof Uint8Array ? `sha256 ${createHash("sha256").update(value).digest("hex")}` : value;
