import type { Socket } from "node:net";
import {
  Client,
  DatabaseError,
  Pool,
  types as parsers,
  type ClientConfig,
  type PoolClient,
  type QueryResult,
} from "pg";
import { PostgresDialect } from "kysely";
import { keepingFirstError } from "./dialects.ts";
import { DatabaseUnavailable } from "./faults.ts";

/** Types that `pg` returns as text by default (int8, numeric). All our values are safe integers. */
const numberTypeIds: ReadonlySet<number> = new Set([20, 1700]);
/** The longest wait for a connection whose queries may take any time. */
const connectMsMax = 10_000;
/** Maximum number of connections. */
const poolMax = 10;
/**
 * Codes of lost connections, a server that is stopping, starting or read-only, too many connections, cancelled
 * queries, and transactions that waited too long for their client.
 */
const unavailablePattern = /^(08|57P|58)|^(25006|25P03|53300|57014)$/;

const getTypeParser = (id: number, format?: "text" | "binary") =>
  // oxlint-disable-next-line typescript/no-unsafe-enum-assignment -- the server may send any type's id
  numberTypeIds.has(id) ? Number : parsers.getTypeParser(id, format);

/** The configuration of a connection that returns 64-bit integers as numbers. */
export const connectionOf = (connectionString: string): ClientConfig => ({
  connectionString,
  types: { getTypeParser },
});

/**
 * PostgreSQL through `pg`. Returns 64-bit integers as numbers, as with SQLite. `timeoutMs` limits a query and
 * the wait for a connection; undefined means no limit for queries. Throws `DatabaseUnavailable` if the server is
 * unreachable or does not respond.
 */
export function postgresDialect(connectionString: string, timeoutMs: number | undefined): PostgresDialect {
  const pool = new Pool({
    ...connectionOf(connectionString),
    max: poolMax,
    keepAlive: true,
    connectionTimeoutMillis: timeoutMs ?? connectMsMax,
    ...(timeoutMs === undefined ? {} : { Client: clientClass(timeoutMs) }),
  });
  // The pool replaces a connection that the server closed, and the query's caller gets the error. Without
  // listeners, the event would end the process.
  pool.on("error", () => {});
  pool.on("connect", (client) => client.on("error", () => {}));
  const connect = async (): Promise<PoolClient> =>
    pool.connect().catch((error: unknown) => {
      throw new DatabaseUnavailable(error);
    });
  const { options } = pool;
  return keepingFirstError(new PostgresDialect({ pool: { connect, end: () => pool.end(), options } }));
}

type Query = (text: string, values?: unknown[]) => Promise<QueryResult>;

/** A client that closes its connection if a query times out, because later queries on it would wait too. */
const clientClass = (timeoutMs: number): new (config?: ClientConfig) => Client =>
  class extends Client {
    override readonly query = (async (text: string, values?: unknown[]) => {
      const { stream } = (this as unknown as { connection: { stream: Socket } }).connection;
      const timer = setTimeout(() => stream.destroy(), timeoutMs);
      try {
        return await (super.query as Query)(text, values);
      } catch (error) {
        const isGone =
          error instanceof DatabaseError ? unavailablePattern.test(error.code ?? "") : stream.destroyed;
        throw isGone ? new DatabaseUnavailable(error) : error;
      } finally {
        clearTimeout(timer);
      }
    }) as Client["query"];
  };
