import pg from "pg";
import { PostgresDialect } from "kysely";

const int8TypeId = 20;
const numericTypeId = 1700;

/** PostgreSQL through `pg`; 64-bit integers come back as numbers, as they do from SQLite. */
export function postgresDialect(connectionString: string): PostgresDialect {
  const types = {
    getTypeParser: ((oid: number, format?: "text" | "binary") =>
      oid === int8TypeId || oid === numericTypeId
        ? Number
        : pg.types.getTypeParser(oid, format as "text")) as typeof pg.types.getTypeParser,
  };
  const pool = new pg.Pool({ connectionString, types, max: 10 });
  // An idle connection that the server ends is replaced at its next use; without a listener it would end the process.
  pool.on("error", () => {});
  return new PostgresDialect({ pool });
}
