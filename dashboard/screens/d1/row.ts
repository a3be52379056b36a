import type { Cell } from "../../parts/cell.ts";
import { quoted, type ColumnInfo } from "./database.ts";

/** A value that is typed for a column; undefined is NULL. */
export type Typed = string | undefined;

/** A statement with its parameters. */
export interface Statement {
  sql: string;
  params: Cell[];
}

/** A row of a table: its columns, and its values in their order. */
export interface Row {
  table: string;
  columns: readonly ColumnInfo[];
  values: readonly Cell[];
}

/** The text of a value in a form. */
export const typedOf = (value: Cell): Typed => (value === null ? undefined : String(value));

/** The value that a text is stored as. A column without a type keeps a number a number. */
function valueOf(typed: Typed, before: Cell): Cell {
  if (typed === undefined) return null;
  const isNumber = typeof before === "number" && typed.trim() !== "" && String(Number(typed)) === typed;
  return isNumber ? Number(typed) : typed;
}

/** A condition that holds only for this row, and only as long as some of its columns have these values. */
function conditionOf({ columns, values }: Row, also: readonly number[]): Statement {
  const at = columns.flatMap(({ isKey }, index) => (isKey || also.includes(index) ? [index] : []));
  return {
    sql: at.map((index) => `${quoted(columns[index]!.name)} is ?`).join(" and "),
    params: at.map((index) => values[index]!),
  };
}

/** The statement that changes the columns with another value; undefined if there is none. */
export function updateOf(row: Row, typed: readonly Typed[]): Statement | undefined {
  const { table, columns, values } = row;
  const changed = values.flatMap((value, at) => (typed[at] === typedOf(value) ? [] : [at]));
  if (changed.length === 0) return undefined;
  const sets = changed.map((at) => `${quoted(columns[at]!.name)} = ?`).join(", ");
  const where = conditionOf(row, changed);
  return {
    sql: `update ${quoted(table)} set ${sets} where ${where.sql};`,
    params: [...changed.map((at) => valueOf(typed[at], values[at]!)), ...where.params],
  };
}

/** The statement that deletes a row. */
export function deletionOf(row: Row): Statement {
  const { sql, params } = conditionOf(row, []);
  return { sql: `delete from ${quoted(row.table)} where ${sql};`, params };
}
