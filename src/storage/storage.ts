import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { Kysely, type Transaction } from "kysely";
import { ChangeLog } from "./change-log.ts";
import { noDurability, walDurability, type Durability } from "./durability.ts";
import { migrate } from "./migrate.ts";
import type { Database } from "./schema.ts";
import { openSqlite, sqliteDialect } from "./sqlite.ts";

export type Read = Kysely<Database>;
export type Write = Transaction<Database>;

/** One committed configuration change: what happened to which row. `parentId` is the zone or account it belongs to. */
export interface Change {
  kind:
    | "account"
    | "user"
    | "api_token"
    | "zone"
    | "dns_record"
    /** The serial that a change of records gave the zone: `id` is the number. */
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
type ChangeListener = (changes: readonly Change[]) => Promise<void>;

/** The database: queries through `read`, and `write` for transactions that are durable when they resolve. */
export class Storage {
  readonly read: Read;
  readonly engine: "sqlite" | "postgres";
  readonly #durability: Durability;
  readonly #database: DatabaseSync | undefined;
  readonly #listeners: ChangeListener[] = [];
  readonly #log: ChangeLog | undefined;
  /** Transactions that have begun, or are about to. */
  #writes = 0;
  #stopWatching: (() => Promise<void>) | undefined;

  constructor(read: Read, engine: "sqlite" | "postgres", durability: Durability, database?: DatabaseSync) {
    this.read = read;
    this.engine = engine;
    this.#durability = durability;
    this.#database = database;
    // A SQLite file has one owner, which hears of its changes directly.
    this.#log = engine === "postgres" ? new ChangeLog(read) : undefined;
  }

  /**
   * Runs `work` in one transaction. When the promise resolves the writes are on disk and every listener of this
   * process has seen the changes, so an answer sent after it is already true at the edge.
   */
  async write<T>(work: (trx: Write, changed: (change: Change) => void) => Promise<T>): Promise<T> {
    const changes: Change[] = [];
    this.#writes++;
    const result = await this.read
      .transaction()
      .execute(async (trx) => {
        const value = await work(trx, (change) => changes.push(change));
        if (changes.length > 0) await this.#log?.append(trx, changes);
        return value;
      })
      .finally(() => this.#writes--);
    await this.#durability.flush();
    await this.#notify(changes);
    return result;
  }

  /**
   * For a writer of very many small rows: runs `work` on the bare SQLite connection, between other transactions and
   * without awaiting anything. What it commits is durable when the promise resolves. Undefined on PostgreSQL.
   */
  get direct(): (<T>(work: (database: DatabaseSync) => T) => Promise<T>) | undefined {
    const database = this.#database;
    if (database === undefined) return undefined;
    return async (work) => {
      // Without a transaction that is open, nobody has to be waited for.
      const isFree = this.#writes === 0;
      const result = isFree
        ? work(database)
        : await this.read.connection().execute(async () => work(database));
      await this.#durability.flush();
      return result;
    };
  }

  onChange(listener: ChangeListener): void {
    this.#listeners.push(listener);
  }

  /** On PostgreSQL, follows the changes that other nodes commit from now on. To be called before anything is loaded. */
  async watch(intervalMs: number): Promise<void> {
    const log = this.#log;
    if (log === undefined) return;
    await log.start();
    let polling: Promise<void> | undefined;
    const timer = setInterval(() => {
      polling ??= log
        .next((changes) => this.#notify(changes))
        .catch(() => {}) // the database is away: the next poll goes on from the same place
        .finally(() => (polling = undefined));
    }, intervalMs);
    timer.unref();
    this.#stopWatching = async () => {
      clearInterval(timer);
      await polling;
    };
  }

  async close(): Promise<void> {
    await this.#stopWatching?.();
    await this.#durability.close();
    await this.read.destroy();
  }

  async #notify(changes: readonly Change[]): Promise<void> {
    if (changes.length === 0) return;
    for (const listener of this.#listeners) await listener(changes);
  }
}

/** Opens "sqlite:PATH", "sqlite::memory:" or "postgres://…", and brings its schema up to date under a lock. */
export async function openStorage(url: string): Promise<Storage> {
  const storage = url.startsWith("sqlite:")
    ? await openSqliteStorage(url.slice(7))
    : await openPostgresStorage(url);
  try {
    await migrate(storage);
  } catch (error) {
    await storage.close();
    throw error;
  }
  return storage;
}

async function openSqliteStorage(path: string): Promise<Storage> {
  if (path !== ":memory:") mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const database = openSqlite(path);
  // The write-ahead log exists only after a first write.
  if (path !== ":memory:") database.exec("pragma user_version = 1");
  const durability = path === ":memory:" ? noDurability : await walDurability(path);
  return new Storage(
    new Kysely<Database>({ dialect: sqliteDialect(database) }),
    "sqlite",
    durability,
    database,
  );
}

async function openPostgresStorage(url: string): Promise<Storage> {
  const { postgresDialect } = await import("./postgres.ts");
  return new Storage(new Kysely<Database>({ dialect: postgresDialect(url) }), "postgres", noDurability);
}
