import type { Cell } from "../../parts/cell.ts";

/** A database as the API shows it; the fields that the console uses. */
export interface Database {
  uuid: string;
  name: string;
  created_at: string;
  num_tables?: number;
  file_size?: number;
  running_in_region?: string;
}

/** The result of one statement. */
export interface StatementResult {
  results: { columns: string[]; rows: Cell[][] };
  meta: {
    duration: number;
    changes: number;
    rows_read: number;
    rows_written: number;
    size_after: number;
  };
}

/** A column of a table or view. */
export interface ColumnInfo {
  table: string;
  name: string;
  type: string;
  isNotNull: boolean;
  byDefault: Cell;
  isKey: boolean;
}

export const one = "/accounts/{account_id}/d1/database/{database_id}";

/** The path of a database below /client/v4. */
export const databasePath = (account: string, name: string): string =>
  `/accounts/${account}/d1/database/${encodeURIComponent(name)}`;

export const paramsOf = (account: string, name: string): Readonly<Record<string, string>> => ({
  account_id: account,
  database_id: name,
});

/** A name of SQL in quotes. */
export const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`;
