import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { Kysely, sql, type Transaction } from "kysely";
import { ChangeLog, changesChannel, type TransactionId } from "./changes/change-log.ts";
import type { ChangeFeed } from "./changes/change-feed.ts";
import type { Following } from "./changes/following.ts";
import type { Follower, FollowIntervals } from "./changes/follower.ts";
import type { LogFollower } from "./checkpointer.ts";
import { noDurability, walDurability, type Durability } from "./durability.ts";
import { isDiskFull, isUnavailable } from "./faults.ts";
import { refuseUnfinished } from "./backup/claim.ts";
import { checkTables, explainingDamage, refuseEmptyFile } from "./damage.ts";
import { lastStatement } from "./changes/last-statement.ts";
import { currentSpan } from "../tracing/spans/current.ts";
import { inChildSpan } from "../tracing/spans/span.ts";
import { ChangeListeners, type ChangeListener, type Reload, type RestoredRows } from "./changes/listeners.ts";
import { migrate, schemaVersions } from "./migrations/migrate.ts";
import { createSchema } from "./migrations/new-sqlite.ts";
import type { ChangeKind, Database } from "./schema.ts";
import { straight } from "./prepared.ts";
import { closeDatabase } from "./private-files.ts";
import { openSqlite, openSqliteReader, sqliteDialect } from "./sqlite.ts";
import { noWriteHooks, type WriteHooks } from "./under-test/write-hooks.ts";
import { unawaited } from "../util/uncaught.ts";
import { witnessing, type Witness } from "./witness.ts";

/**
 * For queries outside a transaction. Never write with it: `Storage.write` notifies listeners and waits for the
 * disk.
 */
export type Read = Kysely<Database>;
/** The transaction of `Storage.write`, for queries that belong to it. */
export type Write = Transaction<Database>;

/** One committed configuration change of a row. `parentId` is the zone or account of the row. */
export interface Change {
  kind: ChangeKind;
  id: string;
  parentId?: string;
}

const notifyAgainMs = 1000;
/** Connections of an edge process. It reads little: everything at its start, and then the rows that changes name. */
const readerConnectionsMax = 2;
/** Default timeout of a PostgreSQL query. */
const queryTimeoutMs = 30_000;

/** Connections to PostgreSQL that are busy and idle, and the transactions that wait for one. */
export type PoolConnections = Record<"busy" | "idle" | "waiting", number>;

interface PostgresParts {
  url: string;
  /** See `PooledDialect`. */
  dropSilent: (sinceMs: number) => void;
  connections: () => PoolConnections;
}

/**
 * The database. Queries go through `read`. Transactions go through `write`, and are durable when it resolves.
 */
export class Storage {
  readonly read: Read;
  writeHooks: WriteHooks = noWriteHooks;
  readonly engine: "sqlite" | "postgres";
  readonly #durability: Durability;
  readonly #database: DatabaseSync | undefined;
  readonly #listeners = new ChangeListeners();
  readonly #log: ChangeLog | undefined;
  readonly #postgres: PostgresParts | undefined;
  readonly #feed: ChangeFeed | undefined;
  #follower: Follower | undefined;
  #witness: Witness | undefined;
  /** Number of open and waiting transactions. */
  #writes = 0;
  /** Whether the last write failed because the database was unavailable or its disk full. */
  #refusesWrites = false;
  /** Committed changes that some listener failed to handle: it could not read the database, for example. */
  #unnotified: Change[] = [];
  /** When the first of these changes was committed, by `performance.now()`. */
  #unnotifiedSinceMs: number | undefined;
  #notifying: NodeJS.Timeout | undefined;

  /** Called after each write with its time, and with its error if it failed. */
  onWritten: ((seconds: number, error?: unknown) => void) | undefined;

  /** `database` is the connection to SQLite. With a `feed`, only the main process writes. */
  constructor(
    read: Read,
    engine: "sqlite" | "postgres",
    durability: Durability,
    { database, postgres, feed }: { database?: DatabaseSync; postgres?: PostgresParts; feed?: ChangeFeed },
  ) {
    this.read = read;
    this.engine = engine;
    this.#durability = durability;
    this.#database = database;
    this.#postgres = postgres;
    this.#feed = feed;
    // A SQLite file has one owner, which notifies its own listeners directly.
    this.#log = engine === "postgres" && feed === undefined ? new ChangeLog() : undefined;
  }

  /**
   * Runs `work` in one transaction. When the promise resolves, the writes are on disk and every listener of
   * this process has handled the changes, so they are already in effect at the edge.
   */
  async write<T>(
    work: (trx: Write, changed: (change: Change) => void) => Promise<T>,
    { isWitnessed }: { isWitnessed: boolean } = { isWitnessed: true },
  ): Promise<T> {
    const { onWritten } = this;
    if (onWritten === undefined) return this.#write(work, isWitnessed);
    const startMs = performance.now();
    const seconds = (): number => (performance.now() - startMs) / 1000;
    try {
      const result = await this.#write(work, isWitnessed);
      onWritten(seconds());
      return result;
    } catch (error) {
      onWritten(seconds(), error);
      throw error;
    }
  }

  async #write<T>(
    work: (trx: Write, changed: (change: Change) => void) => Promise<T>,
    isWitnessed: boolean,
  ): Promise<T> {
    if (this.#feed !== undefined) throw new Error("Only the main process writes to the database");
    const changes: Change[] = [];
    const witnessed = isWitnessed ? witnessing(this.#witness, work, changes) : work;
    const span = currentSpan();
    const { result, transaction, flushed } = await inChildSpan(span, "storage.write", async () =>
      this.#commit(witnessed, changes),
    );
    if (isWitnessed) this.#witness?.committed();
    await inChildSpan(span, "changes.ack", async () => this.#notify(changes, transaction));
    await flushed;
    return result;
  }

  /** Commits the work of a write, and waits for the disk. `flushed` rejects if that failed. */
  async #commit<T>(work: (trx: Write, changed: (change: Change) => void) => Promise<T>, changes: Change[]) {
    this.#writes++;
    const { result, transaction } = await this.#noting(
      (this.#log === undefined
        ? this.read.transaction().execute(async (trx) => {
            const run = () => straight(trx, () => work(trx, (change) => changes.push(change)));
            return { result: await this.writeHooks.around(run, changes), transaction: undefined };
          })
        : this.#writeLogged(this.#log, work, changes)
      ).finally(() => this.#writes--),
    );
    // Listeners are notified of every commit, even if it may not be on disk.
    const flushed = this.#noting(this.#durability.flush());
    await flushed.catch(() => {});
    return { result, transaction, flushed };
  }

  /** Lets `witness` add rows to each transaction. There is at most one witness. */
  witnessWith(witness: Witness): void {
    this.#witness = witness;
  }

  /** Runs `work` in a transaction whose last statement logs the changes for other nodes. */
  async #writeLogged<T>(
    log: ChangeLog,
    work: (trx: Write, changed: (change: Change) => void) => Promise<T>,
    changes: Change[],
  ): Promise<{ result: T; transaction: TransactionId | undefined }> {
    let transaction: TransactionId | undefined;
    try {
      return await this.read.transaction().execute(async (trx) => {
        const { guarded, end } = lastStatement(trx);
        const result = await work(guarded, (change) => {
          end.refuseAfter("a change");
          changes.push(change);
        });
        end.isReached = true;
        if (changes.length === 0) return { result, transaction };
        transaction = await log.append(trx, changes);
        this.#follower?.expect(transaction);
        return { result, transaction };
      });
    } catch (error) {
      // The commit may have succeeded. Then this node reads the change as if it came from another one.
      if (transaction !== undefined) this.#follower?.settle(transaction, false);
      throw error;
    }
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
          const run = () => this.writeHooks.direct(() => work(database));
          const result = isFree ? run() : await this.read.connection().execute(async () => run());
          await this.#durability.flush();
          return result;
        })(),
      );
    };
  }
  reload = async (restored?: RestoredRows): Promise<void> => this.#listeners.reload(restored);
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
  /**
   * Calls `listener` with committed changes of rows, of all nodes. `reload` is called when changes may have been
   * missed: it reads everything that the listener keeps in memory.
   */
  onChange(listener: ChangeListener, reload: Reload): void {
    this.#listeners.add(listener, reload);
  }

  /**
   * On PostgreSQL, notes from where to follow the changes that other nodes commit. Call it before loading any
   * data, and `follow` after all of it is loaded. `onState` is called with each failure to follow, and with
   * undefined when following works again. In an edge process, begins to listen to the main process.
   */
  async watch(onState?: (failure: unknown) => void): Promise<void> {
    this.#feed?.subscribe(this.#listeners);
    if (this.#log === undefined) return;
    const { startFollower } = await import("./changes/start-follower.ts");
    this.#follower = await startFollower({
      url: this.#postgres!.url,
      onReturned: this.#postgres!.dropSilent,
      token: this.#log.token,
      notify: (payload) => sql`select pg_notify(${changesChannel}, ${payload})`.execute(this.read),
      listeners: this.#listeners,
      read: this.read,
      ...(onState === undefined ? {} : { onState }),
    });
  }

  /** Follows the changes of other nodes. */
  follow(intervals: FollowIntervals): void {
    this.#follower?.run(intervals);
  }

  /** How this node follows the changes of others; undefined on SQLite, which has one node. */
  get following(): Following | undefined {
    return this.#follower;
  }

  /** The age of the oldest change that is not in effect at this node, or the time since it last looked for one. */
  get lagSeconds(): number {
    const sinceMs = this.#unnotifiedSinceMs;
    const ownSeconds = sinceMs === undefined ? 0 : (performance.now() - sinceMs) / 1000;
    return Math.max(ownSeconds, this.#follower?.lagSeconds ?? 0, this.#feed?.lagSeconds ?? 0);
  }

  /** Connections of the pool by their state; undefined on SQLite. */
  get connections(): PoolConnections | undefined {
    return this.#postgres?.connections();
  }

  async close(): Promise<void> {
    clearTimeout(this.#notifying);
    this.#feed?.stop();
    await this.#follower?.stop();
    await this.#durability.close();
    await this.read.destroy();
    this.#durability.released?.();
  }

  /** Notes for the shipped log, if there is one, that content was stored under a key. */
  blobStored(key: string): void {
    this.#durability.post?.({ blob: key });
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
  async #notify(changes: readonly Change[], transaction: TransactionId | undefined): Promise<void> {
    const follower = transaction === undefined ? undefined : this.#follower;
    try {
      await this.#listeners.notify(changes);
    } catch (error) {
      // The follower repeats the changes in the order of the log.
      if (follower !== undefined) follower.settle(transaction!, false);
      else {
        this.#unnotified.push(...changes);
        this.#unnotifiedSinceMs ??= performance.now();
        this.#notifyLater();
      }
      throw error;
    }
    follower?.settle(transaction!, true);
  }

  #notifyLater(): void {
    this.#notifying ??= setTimeout(() => {
      this.#notifying = undefined;
      const changes = this.#unnotified.splice(0);
      unawaited(this.#notifyAgain(changes));
    }, notifyAgainMs).unref();
  }

  async #notifyAgain(changes: readonly Change[]): Promise<void> {
    try {
      await this.#listeners.notify(changes);
      if (this.#unnotified.length === 0) this.#unnotifiedSinceMs = undefined;
    } catch {
      this.#unnotified.unshift(...changes);
      this.#notifyLater();
    }
  }
}

/**
 * Opens "sqlite:PATH", "sqlite::memory:" or "postgres://…" and migrates its schema under a lock. On
 * PostgreSQL, `timeoutMs` limits a query and the wait for a connection. `follower` follows the log of SQLite.
 */
export async function openStorage(
  url: string,
  timeoutMs = queryTimeoutMs,
  follower?: LogFollower,
  image?: Uint8Array,
): Promise<Storage> {
  const storage = url.startsWith("sqlite:")
    ? await openSqliteStorage(url.slice(7), follower, image)
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

/** Connects to PostgreSQL without a migration and without checks, for commands that read or restore a database. */
export async function connectPostgres(url: string): Promise<Storage> {
  return openPostgresStorage(url, queryTimeoutMs);
}

/** Opens a database that the main process has migrated, for an edge process. */
export async function openReader(url: string, timeoutMs: number, feed: ChangeFeed): Promise<Storage> {
  if (!url.startsWith("sqlite:")) return openPostgresStorage(url, timeoutMs, feed);
  const database = openSqliteReader(url.slice(7));
  return new Storage(new Kysely<Database>({ dialect: sqliteDialect(database) }), "sqlite", noDurability, {
    feed,
  });
}

async function openSqliteStorage(path: string, follower?: LogFollower, image?: Uint8Array): Promise<Storage> {
  const database = path === ":memory:" ? openSqlite(path) : openSqliteFile(path);
  if (image !== undefined) database.deserialize(image);
  await createSchema(database, schemaVersions);
  const durability = path === ":memory:" ? noDurability : await walDurability(path, undefined, follower);
  return new Storage(new Kysely<Database>({ dialect: sqliteDialect(database) }), "sqlite", durability, {
    database,
  });
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

async function openPostgresStorage(
  url: string,
  timeoutMs: number | undefined,
  feed?: ChangeFeed,
): Promise<Storage> {
  const { postgresDialect } = await import("./postgres.ts");
  const dialect = postgresDialect(url, timeoutMs, feed === undefined ? undefined : readerConnectionsMax);
  const postgres = { url, dropSilent: dialect.dropSilent, connections: dialect.connections };
  const parts = feed === undefined ? { postgres } : { postgres, feed };
  return new Storage(new Kysely<Database>({ dialect }), "postgres", noDurability, parts);
}
