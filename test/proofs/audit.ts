import { parseArgs } from "node:util";
import { startPostgres } from "../helpers/postgres.ts";
import { temporaryFolder } from "../helpers/process.ts";
import { auditAfterKills } from "../observability/audit-crash.ts";

/*
 * Kills the server between changes and their answers, and on SQLite also while entries get their indexes, and compares
 * the audit log with the records after each start. `--rounds N` on each storage; 100 by default.
 */
const { values } = parseArgs({ options: { rounds: { type: "string", default: "100" } } });
const rounds = Number(values.rounds);
const onSqlite = await auditAfterKills(["--data-dir", temporaryFolder()], rounds, true);
console.log("SQLite", rounds, "rounds:", onSqlite);
const postgres = await startPostgres();
const onPostgres = await auditAfterKills(["--database-url", await postgres.createDatabase()], rounds);
console.log("PostgreSQL", rounds, "rounds:", onPostgres);
await postgres.stop();
process.exitCode = onSqlite.apart + onPostgres.apart === 0 ? 0 : 1;
