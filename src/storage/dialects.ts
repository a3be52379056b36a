import type { Storage, Write } from "./storage.ts";

/**
 * Takes a zone's row lock for the rest of the transaction, so that checks over its records hold until the commit.
 * SQLite runs one write transaction at a time and needs nothing.
 */
export async function lockZone(storage: Storage, trx: Write, zoneId: string): Promise<void> {
  if (storage.engine === "sqlite") return;
  await trx.selectFrom("zones").select("id").where("id", "=", zoneId).forUpdate().execute();
}

/** The same for what belongs to an account. Rows that refer to it may still be added meanwhile. */
export async function lockAccount(storage: Storage, trx: Write, accountId: string): Promise<void> {
  if (storage.engine === "sqlite") return;
  await trx.selectFrom("accounts").select("id").where("id", "=", accountId).forNoKeyUpdate().execute();
}

/** Whether an error means that a unique constraint was violated. */
export function isUniqueViolation(error: unknown): boolean {
  const { code, errcode } = error as { code?: unknown; errcode?: unknown };
  return code === "23505" || errcode === 2067 || errcode === 1555;
}

/** Whether the database refuses what was to be written, and always will: a value, or a constraint that it breaks. */
export function isDataRefused(error: unknown): boolean {
  const { code, errcode } = error as { code?: unknown; errcode?: unknown };
  // SQLite: too big, a constraint, a mismatch of types, out of range. PostgreSQL: classes of its codes.
  if (typeof errcode === "number") return [18, 19, 20, 25].includes(errcode & 0xff);
  return typeof code === "string" && /^(22|23|54)...$|^ERR_INVALID_ARG_/.test(code);
}

/** Whether a write failed because there is no room: in a file, in SQLite or in PostgreSQL. */
export function isDiskFull(error: unknown): boolean {
  const { code, errcode } = error as { code?: unknown; errcode?: unknown };
  return code === "ENOSPC" || code === "EDQUOT" || code === "53100" || errcode === 13;
}
