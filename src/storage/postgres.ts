import { Pool, types as parsers } from "pg";
import { PostgresDialect } from "kysely";

/** Types that JavaScript reads as text by default, though no value of ours is beyond a safe integer: int8, numeric. */
const numberTypeIds: ReadonlySet<number> = new Set([20, 1700]);

/** PostgreSQL through `pg`; 64-bit integers come back as numbers, as they do from SQLite. */
export function postgresDialect(connectionString: string): PostgresDialect {
  const getTypeParser = (id: number, format?: "text" | "binary") =>
    // oxlint-disable-next-line typescript/no-unsafe-enum-assignment -- the server may send any type's id
    numberTypeIds.has(id) ? Number : parsers.getTypeParser(id, format);
  const pool = new Pool({ connectionString, types: { getTypeParser }, max: 10 });
  // A connection that the server ends is replaced at its next use, and whoever was using it is told; without listeners
  // it would end the process.
  pool.on("error", () => {});
  pool.on("connect", (client) => client.on("error", () => {}));
  return new PostgresDialect({ pool });
}
