import { CompiledQuery, type Compilable, type SqliteDatabase } from "kysely";
import { connectionOf } from "./sqlite.ts";
import type { Read, Write } from "./storage.ts";

/**
 * The SQLite connections of open transactions. A prepared query runs there at once, because a query of such a transaction has
 * nothing to wait for, and Kysely's way to the connection costs more than most queries.
 */
const connections = new WeakMap<object, SqliteDatabase>();

/** Runs the work of a transaction. On SQLite, its prepared queries go straight to the connection. */
export async function straight<T>(trx: Write, work: () => Promise<T>): Promise<T> {
  const connection = connectionOf(trx);
  if (connection === undefined) return work();
  connections.set(trx, connection);
  try {
    return await work();
  } finally {
    connections.delete(trx);
  }
}

/** A placeholder for a value while a query is built. */
class Placeholder {
  readonly name: string;
  constructor(name: string) {
    this.name = name;
  }
}

/** A query that is built once for each engine. */
interface Prepared<P, R> {
  (db: Read, parameters: P): Promise<R[]>;
  /** Runs the query at once if `trx` is a transaction on SQLite; undefined otherwise. */
  now(trx: Write, parameters: P): R[] | undefined;
}

/**
 * A query that is built once for each engine. On the hottest paths, building a query costs several times as
 * much as running it (profile of `npm run bench -- api`). Other queries are built where they are used.
 */
export function prepared<P extends object, R>(
  build: (db: Read, parameters: P) => Compilable<R>,
): Prepared<P, R> {
  const compiled = new Map<unknown, CompiledQuery>();
  const placeholders = new Proxy({}, { get: (_, name) => new Placeholder(String(name)) }) as P;
  const queryFor = (db: Read): CompiledQuery => {
    const engine = db.getExecutor().adapter.constructor;
    let query = compiled.get(engine);
    if (query === undefined) compiled.set(engine, (query = build(db, placeholders).compile()));
    return query;
  };
  const valuesOf = ({ parameters: places }: CompiledQuery, parameters: P): unknown[] =>
    places.map((value) => (value instanceof Placeholder ? parameters[value.name as keyof P] : value));
  const now = (trx: Read, parameters: P): R[] | undefined => {
    const connection = connections.get(trx);
    if (connection === undefined) return undefined;
    const query = queryFor(trx);
    const values = valuesOf(query, parameters);
    const statement = connection.prepare(query.sql);
    if (statement.reader) return statement.all(values) as R[];
    statement.run(values);
    return [];
  };
  const run = async (db: Read, parameters: P): Promise<R[]> => {
    const rows = now(db, parameters);
    if (rows !== undefined) return rows;
    const query = queryFor(db);
    const result = await db.executeQuery(CompiledQuery.raw(query.sql, valuesOf(query, parameters)));
    return result.rows as R[];
  };
  return Object.assign(run, { now });
}
