import { DatabaseSync, type SQLInputValue, type StatementSync } from "node:sqlite";
import { SqliteAdapter, SqliteDialect, type Kysely, type SqliteDatabase, type SqliteStatement } from "kysely";
import { keepingFirstError } from "./dialects.ts";

const statementsMax = 256;
/** SQLite's default of 2 MB is smaller than the indexes of an installation with a few thousand records. */
const cacheKibibytes = 16 * 1024;

/**
 * Opens a SQLite file (or ":memory:") with the settings that storage relies on. durability.ts flushes it to
 * disk.
 */
export function openSqlite(path: string): DatabaseSync {
  const database = new DatabaseSync(path, { enableForeignKeyConstraints: true, timeout: 5000 });
  // A commit only passes its pages to the operating system. durability.ts flushes them in the thread pool,
  // and a worker thread runs checkpoints, so this thread never waits for the disk.
  database.exec("pragma journal_mode = wal; pragma synchronous = normal; pragma wal_autocheckpoint = 0");
  database.exec(`pragma cache_size = -${cacheKibibytes}`);
  return database;
}

/** Opens a SQLite file that another process writes to. */
export function openSqliteReader(path: string): DatabaseSync {
  return new DatabaseSync(path, { readOnly: true, timeout: 5000 });
}

/** Runs work in a transaction, which is rolled back when the work throws. */
export function inTransaction<Result>(database: DatabaseSync, work: () => Result): Result {
  database.exec("begin");
  try {
    const result = work();
    database.exec("commit");
    return result;
  } catch (error) {
    // SQLite has done so itself after some errors, such as that of a full disk.
    if (database.isTransaction) database.exec("rollback");
    throw error;
  }
}

/** A Kysely dialect over node:sqlite that keeps prepared statements. */
export function sqliteDialect(database: DatabaseSync): SqliteDialect {
  const statements = new Map<string, SqliteStatement>();
  const adapter: SqliteDatabase = {
    close: () => database.close(),
    prepare(sql) {
      let statement = statements.get(sql);
      if (statement === undefined) {
        statement = wrap(database.prepare(sql));
        if (statements.size >= statementsMax) statements.clear();
        statements.set(sql, statement);
      }
      return statement;
    },
  };
  return keepingFirstError(new TransactionalDialect(adapter));
}

/** The connection of a database or transaction with this dialect; undefined with another one. */
export function connectionOf(db: Pick<Kysely<never>, "getExecutor">): SqliteDatabase | undefined {
  const { adapter } = db.getExecutor();
  return adapter instanceof TransactionalAdapter ? adapter.connection : undefined;
}

/** Lets Kysely migrate in a transaction, which it does not do on SQLite by default. */
class TransactionalDialect extends SqliteDialect {
  readonly #connection: SqliteDatabase;

  constructor(connection: SqliteDatabase) {
    super({ database: connection });
    this.#connection = connection;
  }

  override createAdapter(): SqliteAdapter {
    return new TransactionalAdapter(this.#connection);
  }
}

class TransactionalAdapter extends SqliteAdapter {
  readonly connection: SqliteDatabase;

  constructor(connection: SqliteDatabase) {
    super();
    this.connection = connection;
  }

  override get supportsTransactionalDdl(): boolean {
    return true;
  }
}

function wrap(statement: StatementSync): SqliteStatement {
  const values = (parameters: readonly unknown[]) => parameters as SQLInputValue[];
  return {
    reader: statement.columns().length > 0,
    all: (parameters) => statement.all(...values(parameters)),
    run: (parameters) => statement.run(...values(parameters)),
    iterate: (parameters) => statement.iterate(...values(parameters)) as IterableIterator<unknown>,
  };
}
