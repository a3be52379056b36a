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

/** A value of SQLite; bytes are an array of numbers. */
export type Cell = string | number | null | number[];

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

/** The place of a fault in the text of a query. */
export interface Place {
  line: number;
  column: number;
  /** The line with its number, and carets below the fault. */
  lines: string;
}

/**
 * Where a message such as `near "form": syntax error at offset 9` points to. The offset counts bytes from the begin of
 * its statement, and the message does not say which statement: it is the first one that has the named text there.
 */
export function placeOf(message: string, text: string): Place | undefined {
  const offset = Number(/ at offset (\d+)/.exec(message)?.[1] ?? Number.NaN);
  const named = /near "((?:[^"]|"")+?)":|(?:column|table|function): (\S+)/.exec(message);
  if (Number.isNaN(offset)) return undefined;
  const word = (named?.[1] ?? named?.[2]?.split(".").at(-1) ?? "").toLowerCase();
  const places = [...text.matchAll(/(?:^|;)\s*/g)]
    .map(({ index, 0: { length } }) => index + length)
    .map((start) => start + charactersOf(text.slice(start), offset));
  const at = places.find((each) => text.slice(each).toLowerCase().startsWith(word)) ?? places[0]!;
  const before = text.slice(0, at);
  const from = before.lastIndexOf("\n") + 1;
  const end = text.indexOf("\n", at);
  const line = text.slice(from, end < 0 ? undefined : end);
  const number = before.split("\n").length;
  const head = `${number}: `;
  const carets = "^".repeat(Math.max(1, word.length));
  return {
    line: number,
    column: at - from + 1,
    lines: `${head}${line}\n${" ".repeat(head.length + at - from)}${carets}`,
  };
}

const charactersOf = (text: string, bytes: number): number =>
  new TextDecoder().decode(new TextEncoder().encode(text).subarray(0, bytes)).length;
