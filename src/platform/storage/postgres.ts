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
import { PostgresAdapter, PostgresDialect } from "kysely";
import { keepingFirstError } from "./dialects.ts";
import { DatabaseUnavailable } from "./faults.ts";
import type { PoolConnections } from "./storage.ts";

/** Types that `pg` returns as text by default (int8, numeric). All our values are safe integers. */
const numberTypeIds: ReadonlySet<number> = new Set([20, 1700]);
/** The longest wait for a connection whose queries may take any time. */
const connectMsMax = 10_000;
/** A query is given this time before its connection counts as silent. */
const freshMs = 1000;
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
 * Kysely's lock of migrations belongs to a session. A pooler of transactions gives each query another session, where
 * the lock would stay: `migrate` has a lock of its transaction instead.
 */
class WithoutSessionLock extends PostgresAdapter {
  override async acquireMigrationLock(): Promise<void> {}
  override async releaseMigrationLock(): Promise<void> {}
}

class OwnDialect extends PostgresDialect {
  override createAdapter(): PostgresAdapter {
    return new WithoutSessionLock();
  }
}

export interface PooledDialect extends PostgresDialect {
  /**
   * Ends the connections that have had no answer since `sinceMs` (by `performance.now()`); the latest queries
   * get another second. Call this when another connection has lost the server: after a failover, old
   * connections may never learn that their server is gone.
   */
  dropSilent: (sinceMs: number) => void;
  connections: () => PoolConnections;
}

/**
 * PostgreSQL through `pg`. Returns 64-bit integers as numbers, as with SQLite. `timeoutMs` limits a query and
 * the wait for a connection; undefined means no limit for queries. Throws `DatabaseUnavailable` if the server is
 * unreachable or does not respond.
 */
export function postgresDialect(
  connectionString: string,
  timeoutMs: number | undefined,
  connectionsMax = poolMax,
): PooledDialect {
  const clients = new Set<LimitedClient>();
  const pool = new Pool({
    ...connectionOf(connectionString),
    max: connectionsMax,
    keepAlive: true,
    connectionTimeoutMillis: timeoutMs ?? connectMsMax,
    ...(timeoutMs === undefined ? {} : { Client: clientClass(timeoutMs, clients) }),
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
  const dialect = new OwnDialect({ pool: { connect, end: () => pool.end(), options } });
  const dropSilent = (sinceMs: number): void => {
    for (const client of clients) client.dropIfSilent(sinceMs);
  };
  const connections = (): PoolConnections => ({
    busy: pool.totalCount - pool.idleCount,
    idle: pool.idleCount,
    waiting: pool.waitingCount,
  });
  return Object.assign(keepingFirstError(dialect), { dropSilent, connections });
}

type Query = (text: string, values?: unknown[]) => Promise<QueryResult>;

interface LimitedClient extends Client {
  dropIfSilent(sinceMs: number): void;
}

/**
 * A client that closes its connection if a query times out, because later queries on it would wait too. Between two
 * queries, PostgreSQL can end the connection with a message: then `pg` refuses further queries with an error that
 * has no code. The client is in `clients` until its connection ends.
 */
const clientClass = (
  timeoutMs: number,
  clients: Set<LimitedClient>,
): new (config?: ClientConfig) => LimitedClient =>
  class extends Client {
    #isBroken = false;
    #askedMs = performance.now();
    #answeredMs = 0;

    constructor(config?: ClientConfig) {
      super(config);
      clients.add(this);
      this.on("error", () => (this.#isBroken = true));
      this.on("end", () => clients.delete(this));
    }

    get #stream(): Socket {
      return (this as unknown as { connection: { stream: Socket } }).connection.stream;
    }

    dropIfSilent(sinceMs: number): void {
      if (this.#answeredMs >= sinceMs) return;
      if (performance.now() - this.#askedMs >= freshMs) this.#stream.destroy();
      else setTimeout(() => this.dropIfSilent(sinceMs), freshMs).unref();
    }

    override readonly query = (async (text: string, values?: unknown[]) => {
      const stream = this.#stream;
      const timer = setTimeout(() => stream.destroy(), timeoutMs);
      this.#askedMs = performance.now();
      try {
        const result = await (super.query as Query)(text, values);
        this.#answeredMs = performance.now();
        return result;
      } catch (error) {
        const isGone =
          error instanceof DatabaseError
            ? unavailablePattern.test(error.code ?? "")
            : this.#isBroken || stream.destroyed;
        throw isGone ? new DatabaseUnavailable(error) : error;
      } finally {
        clearTimeout(timer);
      }
    }) as Client["query"];
  };
