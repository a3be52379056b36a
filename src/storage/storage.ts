import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { Kysely, type Transaction } from "kysely";
import { noDurability, walDurability, type Durability } from "./durability.ts";
import { migrate } from "./migrate.ts";
import type { Database } from "./schema.ts";
import { openSqlite, sqliteDialect } from "./sqlite.ts";

export type Read = Kysely<Database>;
export type Write = Transaction<Database>;

/** One committed configuration change: what happened to which row. `parentId` is the zone or account it belongs to. */
export interface Change {
  kind: "account" | "user" | "api_token" | "zone" | "dns_record" | "ruleset";
  id: string;
  parentId?: string;
}
type ChangeListener = (changes: readonly Change[]) => Promise<void>;

/** Rows of one insert: PostgreSQL takes at most 65,535 parameters in a statement. */
const logRowsMax = 10_000;

/** The database: queries through `read`, and `write` for transactions that are durable when they resolve. */
export class Storage {
  readonly read: Read;
  readonly engine: "sqlite" | "postgres";
  readonly #durability: Durability;
  readonly #listeners: ChangeListener[] = [];
  #stopWatching: (() => Promise<void>) | undefined;
  #seenSeq = 0;
  #ownSeqs = new Set<number>();

  constructor(read: Read, engine: "sqlite" | "postgres", durability: Durability) {
    this.read = read;
    this.engine = engine;
    this.#durability = durability;
  }

  /**
   * Runs `work` in one transaction. When the promise resolves the writes are on disk and every listener of this
   * process has seen the changes, so an answer sent after it is already true at the edge.
   */
  async write<T>(work: (trx: Write, changed: (change: Change) => void) => Promise<T>): Promise<T> {
    const changes: Change[] = [];
    const result = await this.read.transaction().execute(async (trx) => {
      const value = await work(trx, (change) => changes.push(change));
      if (changes.length > 0 && this.engine === "postgres") await this.#log(trx, changes);
      return value;
    });
    await this.#durability.flush();
    await this.#notify(changes);
    return result;
  }

  onChange(listener: ChangeListener): void {
    this.#listeners.push(listener);
  }

  /** On PostgreSQL, follows the changes that other nodes commit. A SQLite file has one owner, which needs no log. */
  async watch(intervalMs: number): Promise<void> {
    if (this.engine === "sqlite") return;
    const last = await this.read
      .selectFrom("changes")
      .select((eb) => eb.fn.max("seq").as("seq"))
      .executeTakeFirst();
    this.#seenSeq = last?.seq ?? 0;
    let polling: Promise<void> = Promise.resolve();
    const timer = setInterval(() => {
      polling = polling.then(() => this.#poll()).catch(() => {}); // the next poll starts from the same place
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

  async #log(trx: Write, changes: readonly Change[]): Promise<void> {
    const rows = changes.map((c) => ({ kind: c.kind, id: c.id, parent_id: c.parentId ?? null }));
    for (let at = 0; at < rows.length; at += logRowsMax) {
      const chunk = rows.slice(at, at + logRowsMax);
      const inserted = await trx.insertInto("changes").values(chunk).returning("seq").execute();
      for (const row of inserted) this.#ownSeqs.add(row.seq);
    }
  }

  async #poll(): Promise<void> {
    // Sequence numbers may commit out of order: look back a little, and remember what was seen.
    const lookBack = 1000;
    const rows = await this.read
      .selectFrom("changes")
      .selectAll()
      .where("seq", ">", this.#seenSeq - lookBack)
      .orderBy("seq")
      .execute();
    const fresh = rows.filter(
      (row) => !this.#ownSeqs.has(row.seq) && (row.seq > this.#seenSeq || this.#polled),
    );
    for (const row of rows) this.#ownSeqs.add(row.seq);
    this.#polled = true;
    this.#seenSeq = Math.max(this.#seenSeq, rows.at(-1)?.seq ?? 0);
    for (const seq of this.#ownSeqs) if (seq <= this.#seenSeq - lookBack) this.#ownSeqs.delete(seq);
    await this.#notify(
      fresh.map((row) => ({
        kind: row.kind as Change["kind"],
        id: row.id,
        ...(row.parent_id === null ? {} : { parentId: row.parent_id }),
      })),
    );
  }
  #polled = false;

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
  return new Storage(new Kysely<Database>({ dialect: sqliteDialect(database) }), "sqlite", durability);
}

async function openPostgresStorage(url: string): Promise<Storage> {
  const { postgresDialect } = await import("./postgres.ts");
  return new Storage(new Kysely<Database>({ dialect: postgresDialect(url) }), "postgres", noDurability);
}
