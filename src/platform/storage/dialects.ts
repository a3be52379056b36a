import type { Dialect } from "kysely";
import { sql } from "kysely";
import type { Storage, Write } from "./storage.ts";

/**
 * Locks a zone's row for the rest of the transaction, so that checks over its records hold until the commit.
 * SQLite needs no lock, because it runs one write transaction at a time.
 */
export async function lockZone(storage: Storage, trx: Write, zoneId: string): Promise<void> {
  if (storage.engine === "sqlite") return;
  await trx.selectFrom("zones").select("id").where("id", "=", zoneId).forUpdate().execute();
}

/** Serializes transactions that decide on names of zones, so that they see each other's zones. */
export async function lockZoneNames(storage: Storage, trx: Write): Promise<void> {
  if (storage.engine === "sqlite") return;
  await sql`select pg_advisory_xact_lock(${zoneNamesLock})`.execute(trx);
}
/** Keys of advisory locks: arbitrary, but different from those of other locks. */
const zoneNamesLock = 0x7a6f_6e65;
const firstStartLock = 0x6f77_6e65;

/**
 * Serializes the work of starting nodes that only the first of them must do. `work` may use any connection.
 */
export async function inTurnsOfStarts<T>(storage: Storage, work: () => Promise<T>): Promise<T> {
  if (storage.engine === "sqlite") return work();
  // A lock of a transaction, not of a session: poolers of transactions give each statement another session. It
  // is released if the node dies.
  return storage.read.transaction().execute(async (trx) => {
    await sql`select pg_advisory_xact_lock(${firstStartLock})`.execute(trx);
    return work();
  });
}

/** The advisory locks of sweeps, which remove leftovers and which only one node should run at a time. */
const sweeps = { images: 1, kv: 2, assets: 3, audit: 4, logpush: 5 };
const sweepLock = 0x7377_6570;

/**
 * Runs the work of a sweep. Returns undefined without running it if another node is running this sweep. The
 * lock is released if the node dies. It belongs to a transaction without a snapshot, so it works through a
 * pooler and delays no vacuum.
 */
export async function onOneNode<T>(
  storage: Storage,
  sweep: keyof typeof sweeps,
  work: () => Promise<T>,
): Promise<T | undefined> {
  if (storage.engine === "sqlite") return work();
  return storage.read.transaction().execute(async (trx) => {
    const { rows } = await sql<{ isFree: boolean }>`
      select pg_try_advisory_xact_lock(${sweepLock}, ${sweeps[sweep]}) as "isFree"`.execute(trx);
    return rows[0]!.isFree ? work() : undefined;
  });
}

/**
 * Locks an account's row for the rest of the transaction. Other transactions may still add rows that refer to
 * it.
 */
export async function lockAccount(storage: Storage, trx: Write, accountId: string): Promise<void> {
  if (storage.engine === "sqlite") return;
  await trx.selectFrom("accounts").select("id").where("id", "=", accountId).forNoKeyUpdate().execute();
}

/** Whether an error means that a unique constraint was violated. */
export function isUniqueViolation(error: unknown): boolean {
  const { code, errcode } = error as { code?: unknown; errcode?: unknown };
  return code === "23505" || errcode === 2067 || errcode === 1555;
}

/** Whether an error means that a foreign key constraint was violated. */
export function isForeignKeyViolation(error: unknown): boolean {
  const { code, errcode } = error as { code?: unknown; errcode?: unknown };
  return code === "23503" || errcode === 787;
}

/** Whether the database rejected a write permanently, because of a value or a constraint. */
export function isDataRefused(error: unknown): boolean {
  const { code, errcode } = error as { code?: unknown; errcode?: unknown };
  // SQLite: too big, a constraint, a mismatch of types, out of range. PostgreSQL: classes of its codes.
  if (typeof errcode === "number") return [18, 19, 20, 25].includes(errcode & 0xff);
  return typeof code === "string" && /^(22|23|54)...$|^ERR_INVALID_ARG_/.test(code);
}

/**
 * Wraps a dialect so that transactions reject with their first error. After a full disk or a lost connection
 * the transaction is already rolled back. Kysely's own rollback then fails, and its error would hide the
 * cause.
 */
export function keepingFirstError<T extends Dialect>(dialect: T): T {
  const createDriver = dialect.createDriver.bind(dialect);
  dialect.createDriver = () => {
    const driver = createDriver();
    const rollback = driver.rollbackTransaction.bind(driver);
    driver.rollbackTransaction = (connection) => rollback(connection).catch(() => {});
    return driver;
  };
  return dialect;
}
