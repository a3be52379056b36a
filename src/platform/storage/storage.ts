import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { Kysely, type Transaction } from "kysely";
import { ChangeLog } from "./change-log.ts";
import { noDurability, walDurability, type Durability } from "./durability.ts";
import { isDiskFull, isUnavailable } from "./faults.ts";
import { refuseUnfinished } from "./backup/claim.ts";
import { checkTables, explainingDamage, refuseEmptyFile } from "./damage.ts";
import { Listeners, type ChangeListener } from "./listeners.ts";
import { migrate } from "./migrations/migrate.ts";
import type { Database } from "./schema.ts";
import { closeDatabase } from "./private-files.ts";
import { openSqlite, sqliteDialect } from "./sqlite.ts";
import { unawaited } from "../util/uncaught.ts";

export type Read = Kysely<Database>;
export type Write = Transaction<Database>;

/** One committed configuration change of a row. `parentId` is the zone or account of the row. */
export interface Change {
  kind:
    | "account"
    | "user"
    | "api_token"
    | "zone"
    | "dns_record"
    /** A new serial of a zone after a change of records. `id` is the serial. */
    | "dns_serial"
    | "ruleset"
    | "dnssec"
    | "dns_settings"
    | "zone_transfers"
    | "script"
    | "dispatch_namespace"
    | "worker_route"
    | "worker_domain"
    | "account_subdomain"
    | "queue"
    | "schedule"
    | "tail"
    | "snippet"
    | "bot_management"
    | "zone_setting"
    | "certificate"
    | "certificate_pack"
    | "acme_challenge"
    | "image"
    | "image_settings"
    | "workflow";
  id: string;
  parentId?: string;
}

const notifyAgainMs = 1000;
/** Default timeout of a PostgreSQL query. */
const queryTimeoutMs = 30_000;

/**
 * The database. Queries go through `read`. Transactions go through `write`, and are durable when it resolves.
 */
export class Storage {
  readonly read: Read;
  readonly engine: "sqlite" | "postgres";
  readonly #durability: Durability;
  readonly #database: DatabaseSync | undefined;
  readonly #listeners = new Listeners();
  readonly #log: ChangeLog | undefined;
  /** Number of open and waiting transactions. */
  #writes = 0;
  /** Whether the last write failed because the database was unavailable or its disk full. */
  #refusesWrites = false;
  /**
   * Committed changes that some listener failed to handle, for example because it could not read the
   * database.
   */
  #unnotified: Change[] = [];
  #notifying: NodeJS.Timeout | undefined;
  #stopWatching: (() => Promise<void>) | undefined;

  constructor(read: Read, engine: "sqlite" | "postgres", durability: Durability, database?: DatabaseSync) {
    this.read = read;
    this.engine = engine;
    this.#durability = durability;
    this.#database = database;
    // A SQLite file has one owner, which notifies its own listeners directly.
    this.#log = engine === "postgres" ? new ChangeLog(read) : undefined;
  }

  /**
   * Runs `work` in one transaction. When the promise resolves, the writes are on disk and every listener of
   * this process has handled the changes, so they are already in effect at the edge.
   */
  async write<T>(work: (trx: Write, changed: (change: Change) => void) => Promise<T>): Promise<T> {
    const changes: Change[] = [];
    this.#writes++;
    const result = await this.#noting(
      this.read
        .transaction()
        .execute(async (trx) => {
          const value = await work(trx, (change) => changes.push(change));
          if (changes.length > 0) await this.#log?.append(trx, changes);
          return value;
        })
        .finally(() => this.#writes--),
    );
    // Listeners are notified of every commit, even if it may not be on disk.
    const flushed = this.#noting(this.#durability.flush());
    await flushed.catch(() => {});
    await this.#notify(changes);
    await flushed;
    return result;
  }

  /**
   * For writers of very many small rows: runs `work` synchronously on the bare SQLite connection, between
   * other transactions. Its commits are durable when the promise resolves. Undefined on PostgreSQL.
   */
  get direct(): (<T>(work: (database: DatabaseSync) => T) => Promise<T>) | undefined {
    const database = this.#database;
    if (database === undefined) return undefined;
    return async (work) => {
      // Without open transactions there is no need to wait.
      const isFree = this.#writes === 0;
      return this.#noting(
        (async () => {
          const result = isFree
            ? work(database)
            : await this.read.connection().execute(async () => work(database));
          await this.#durability.flush();
          return result;
        })(),
      );
    };
  }

  /** Rejects while the database does not respond or does not accept writes. */
  async check(): Promise<void> {
    if (!this.#refusesWrites) {
      await this.read.selectFrom("meta").select("key").limit(1).execute();
      return;
    }
    await this.write((trx) =>
      trx
        .insertInto("meta")
        .values({ key: "write_check", value: "" })
        .onConflict((conflict) => conflict.column("key").doUpdateSet({ value: "" }))
        .execute(),
    );
  }

  onChange(listener: ChangeListener): void {
    this.#listeners.add(listener);
  }

  /** On PostgreSQL, starts to follow the changes that other nodes commit. Call it before loading any data. */
  async watch(intervalMs: number): Promise<void> {
    const log = this.#log;
    if (log === undefined) return;
    await log.start();
    let polling: Promise<void> | undefined;
    const timer = setInterval(() => {
      polling ??= log
        .next((changes) => this.#listeners.notify(changes))
        .catch(() => {}) // the database is unavailable: the next poll continues from the same position
        .finally(() => (polling = undefined));
    }, intervalMs);
    timer.unref();
    this.#stopWatching = async () => {
      clearInterval(timer);
      await polling;
    };
  }

  async close(): Promise<void> {
    clearTimeout(this.#notifying);
    await this.#stopWatching?.();
    await this.#durability.close();
    await this.read.destroy();
  }

  async #noting<T>(writing: Promise<T>): Promise<T> {
    try {
      const result = await writing;
      this.#refusesWrites = false;
      return result;
    } catch (error) {
      if (isDiskFull(error) || isUnavailable(error)) this.#refusesWrites = true;
      throw error;
    }
  }

  /** Notifies listeners of a commit, and repeats it until every listener has succeeded. */
  async #notify(changes: readonly Change[]): Promise<void> {
    try {
      await this.#listeners.notify(changes);
    } catch (error) {
      this.#unnotified.push(...changes);
      this.#tellLater();
      throw error;
    }
  }

  #tellLater(): void {
    this.#notifying ??= setTimeout(() => {
      this.#notifying = undefined;
      const changes = this.#unnotified.splice(0);
      unawaited(
        this.#listeners.notify(changes).catch(() => {
          this.#unnotified.unshift(...changes);
          this.#tellLater();
        }),
      );
    }, notifyAgainMs).unref();
  }
}

/**
 * Opens "sqlite:PATH", "sqlite::memory:" or "postgres://…" and migrates its schema under a lock. On
 * PostgreSQL, `timeoutMs` limits a query and the wait for a connection.
 */
export async function openStorage(url: string, timeoutMs = queryTimeoutMs): Promise<Storage> {
  const storage = url.startsWith("sqlite:")
    ? await openSqliteStorage(url.slice(7))
    : await openPostgresStorage(url, undefined); // a migration may take long
  try {
    await migrate(storage);
    if (storage.engine === "postgres")
      await (await import("./backup/target-postgres.ts")).refuseUnfinishedRestore(storage.read);
  } catch (error) {
    await storage.close();
    throw error;
  }
  if (storage.engine === "sqlite") return storage;
  await storage.close();
  return openPostgresStorage(url, timeoutMs);
}

async function openSqliteStorage(path: string): Promise<Storage> {
  const database = path === ":memory:" ? openSqlite(path) : openSqliteFile(path);
  const durability = path === ":memory:" ? noDurability : await walDurability(path);
  return new Storage(
    new Kysely<Database>({ dialect: sqliteDialect(database) }),
    "sqlite",
    durability,
    database,
  );
}

function openSqliteFile(path: string): DatabaseSync {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  refuseUnfinished(path);
  refuseEmptyFile(path);
  return explainingDamage(path, () => {
    const database = openSqlite(path);
    try {
      checkTables(path, database);
      // The write-ahead log exists only after a first write.
      database.exec("pragma user_version = 1");
      closeDatabase(path);
      return database;
    } catch (error) {
      database.close();
      throw error;
    }
  });
}

async function openPostgresStorage(url: string, timeoutMs: number | undefined): Promise<Storage> {
  const { postgresDialect } = await import("./postgres.ts");
  const dialect = postgresDialect(url, timeoutMs);
  return new Storage(new Kysely<Database>({ dialect }), "postgres", noDurability);
}
