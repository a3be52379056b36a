import type { ColumnType } from "kysely";

/** Times are integer milliseconds, booleans are 0 or 1, and JSON is text, on both SQLite and PostgreSQL. */
export type Flag = 0 | 1;
/** A column that is written once, with its row. */
export type Immutable<T> = ColumnType<T, T, never>;
/**
 * An integer key that only orders the rows of its table. Nothing may read it or refer to it, because SQLite
 * can reuse the number of a deleted row. Preventing that would make each insert 20 to 33 % slower
 * (docs/decisions/0009).
 */
export type OrderOnly = ColumnType<never, never, never>;
