import type { ColumnType } from "kysely";

/** Times are integer milliseconds, booleans are 0 or 1, and JSON is text: the same on SQLite and PostgreSQL. */
export type Flag = 0 | 1;
export type Immutable<T> = ColumnType<T, T, never>;
