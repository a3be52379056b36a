import type { ChangeKindOf, TablesOf } from "../../declaration.ts";
import type { declarations } from "../../declarations.ts";

/**
 * Every table, for Kysely, as the capabilities declare them. `bigint` and JSON columns are as SQLite and PostgreSQL
 * both return them.
 */
export type Database = TablesOf<typeof declarations>;
/** The kinds of committed changes, which capabilities declare. */
export type ChangeKind = ChangeKindOf<typeof declarations>;
