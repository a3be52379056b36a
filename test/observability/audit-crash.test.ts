import { expect, it } from "vitest";
import { startPostgres } from "../helpers/postgres.ts";
import { temporaryFolder } from "../helpers/process.ts";
import { auditAfterKills } from "./audit-crash.ts";

/** The long form is test/proofs/audit.ts. */
it("the audit log and the records agree after kill -9, on SQLite", async () => {
  const { apart, together } = await auditAfterKills(["--data-dir", temporaryFolder()], 3);
  expect(apart).toBe(0);
  expect(together).toBeGreaterThan(0);
});

it("the audit log and the records agree after kill -9, on PostgreSQL", async () => {
  const postgres = await startPostgres();
  try {
    const { apart } = await auditAfterKills(["--database-url", await postgres.createDatabase()], 2);
    expect(apart).toBe(0);
  } finally {
    await postgres.stop();
  }
});
