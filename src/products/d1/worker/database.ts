/*
 * The object of one D1 database. It runs in a cell without customers' code. Its requests come only from the
 * platform, which has checked the caller.
 */
import { DurableObject } from "cloudflare:workers";
import { dump, dumpBody, type DumpOptions } from "./dump.ts";
import { isRead } from "./is-read.ts";
import {
  runStatements,
  type ConnectionFigures,
  type Format,
  type Result,
  type Statement,
} from "./run-statements.ts";
import { countParameters, splitStatements, StatementSplitter } from "./split.ts";

/** The header with the state that a session has seen, in requests and responses. */
const bookmarkHeader = "x-cf-d1-session-commit-token";
/** The response header with the figures of the queries, for the platform. Clients do not see it. */
const usageHeader = "x-cf-d1-usage";
const writesKey = "writes";
/** How long queries wait for an import or an export. */
const busyMs = 30_000;
const statementLengthMax = 100_000;

interface Failure {
  success: false;
  error: string;
}

export class DatabaseObject extends DurableObject<object> {
  /** Resolves at the end of the import or export in progress; undefined without one. */
  #busy: Promise<void> | undefined;
  /** The stored number of writes, once it was read. */
  #known: number | undefined;
  /** The figures of the connection since the last call; undefined if it has written or failed. */
  #unchanged: ConnectionFigures | undefined;

  override async fetch(request: Request): Promise<Response> {
    const [path, query] = partsOf(request.url);
    if (this.#busy !== undefined && !(await this.#isFree()))
      return Response.json(failure("D1 DB is overloaded. Requests queued for too long."));
    switch (path) {
      case "/query":
      case "/execute":
        return this.#answer(await statementsIn(request), formatOf(query));
      case "/statements":
        return this.#answerApi(await request.json(), formatOf(query));
      case "/facts":
        await request.arrayBuffer(); // workerd resets the connection of a request whose body was not read
        return this.#figures();
      case "/dump":
        return this.#dump(await request.json());
      case "/import":
        return this.#import(request.body!);
      default:
        return Response.json(failure("Not found"), { status: 404 });
    }
  }

  /** Ends the instance, because the database was deleted. */
  reset(): void {
    this.ctx.abort("deleted");
  }

  /** Answers a query of the client: one statement, or several that are a transaction. */
  #answer(asked: Statement | Statement[] | undefined, format: Format): Response {
    if (asked === undefined) return this.#shown(failure("The query is not one that the client sends."));
    try {
      const results = this.#run(Array.isArray(asked) ? asked : [asked], format);
      return this.#shown(Array.isArray(asked) ? results : results[0], usageOf(results));
    } catch (error) {
      return this.#shown(failure((error as Error).message));
    }
  }

  /** Answers a query of the API, which has a result for each statement of each text. */
  #answerApi(asked: Statement[], format: Format): Response {
    try {
      const results = this.#run(asked.flatMap(statementsOf), format);
      return this.#shown(results, usageOf(results));
    } catch (error) {
      return this.#shown(failure((error as Error).message));
    }
  }

  #run(statements: readonly Statement[], format: Format): Result[] {
    const { storage } = this.ctx;
    const before = this.#unchanged;
    this.#unchanged = undefined;
    const run = (): ReturnType<typeof runStatements> =>
      runStatements(storage.sql, statements, format, before);
    // One statement that only reads needs no transaction.
    const isOneRead = statements.length === 1 && isRead(statements[0]!.sql);
    const { results, hasWritten, after } = isOneRead
      ? run()
      : storage.transactionSync(() => {
          const ran = run();
          if (ran.hasWritten) this.#noteWrite();
          return ran;
        });
    if (hasWritten) this.#known = undefined;
    else this.#unchanged = after;
    return results;
  }

  #noteWrite(): void {
    this.ctx.storage.kv.put(writesKey, this.#writes() + 1);
  }

  #writes(): number {
    return (this.#known ??= this.ctx.storage.kv.get<number>(writesKey) ?? 0);
  }

  /** A response with the number of writes, from which the platform makes bookmarks. */
  #shown(answer: unknown, usage?: Usage): Response {
    const headers = {
      [bookmarkHeader]: String(this.#writes()),
      ...(usage && { [usageHeader]: usage.join() }),
    };
    return Response.json(answer, { headers });
  }

  #figures(): Response {
    const { sql } = this.ctx.storage;
    const [row] = sql
      .exec(
        `SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name NOT LIKE '\\_cf\\_%' ESCAPE '\\'`,
      )
      .raw<[number]>();
    return this.#shown({ num_tables: row![0], file_size: sql.databaseSize });
  }

  #dump(options: DumpOptions): Response {
    const free = this.#take();
    return new Response(dumpBody(dump(this.ctx.storage.sql, options), free), {
      headers: { [bookmarkHeader]: String(this.#writes()) },
    });
  }

  /** Runs the statements of a file in one transaction. */
  async #import(body: ReadableStream<Uint8Array>): Promise<Response> {
    const free = this.#take();
    this.#unchanged = undefined;
    const { storage } = this.ctx;
    const counts = { num_queries: 0, rows_read: 0, rows_written: 0 };
    const run = (statements: readonly string[]): void => {
      for (const statement of statements) {
        const cursor = storage.sql.exec(statement);
        for (const _ of cursor.raw());
        counts.num_queries++;
        counts.rows_read += cursor.rowsRead;
        counts.rows_written += cursor.rowsWritten;
      }
    };
    let error: string | undefined;
    try {
      await storage.transaction(async (transaction) => {
        // Created inside the transaction, which does not wait for streams that were opened before it.
        const reader = body.getReader();
        const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false });
        const splitter = new StatementSplitter();
        const feed = (bytes: Uint8Array | undefined): void => {
          run(splitter.push(textOf(decoder, bytes)));
          if (bytes === undefined) run(splitter.end());
        };
        // After a failed statement the rest is read as well, so that the response can be sent.
        for (;;) {
          const { done, value } = await reader.read();
          error ??= messageOf(() => feed(done ? undefined : value));
          if (splitter.pendingLength > statementLengthMax) error ??= "statement too long: SQLITE_TOOBIG";
          if (done) break;
        }
        if (counts.num_queries === 0) error ??= "No SQL statements detected.";
        if (error === undefined) this.#noteWrite();
        else transaction.rollback();
      });
    } finally {
      this.#known = undefined;
      free();
    }
    if (error !== undefined) return this.#shown(failure(error));
    const usage: Usage = [0, counts.num_queries, counts.rows_read, counts.rows_written];
    return this.#shown({ ...counts, size_after: storage.sql.databaseSize }, usage);
  }

  /** Makes other requests wait until the returned function is called. */
  #take(): () => void {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#busy = promise;
    return () => {
      if (this.#busy === promise) this.#busy = undefined;
      resolve();
    };
  }

  /** Waits for an import or an export. Returns whether it has ended in time. */
  async #isFree(): Promise<boolean> {
    const late = Promise.withResolvers<void>();
    const timer = setTimeout(() => late.resolve(), busyMs);
    const until = Date.now() + busyMs;
    while (this.#busy !== undefined && Date.now() < until) await Promise.race([this.#busy, late.promise]);
    clearTimeout(timer);
    return this.#busy === undefined;
  }
}

type Usage = [readQueries: number, writeQueries: number, rowsRead: number, rowsWritten: number];

function usageOf(results: readonly Result[]): Usage {
  const usage: Usage = [0, 0, 0, 0];
  for (const { meta } of results) {
    usage[meta.changed_db ? 1 : 0]++;
    usage[2] += meta.rows_read;
    usage[3] += meta.rows_written;
  }
  return usage;
}

const isStatement = (value: unknown): value is Statement =>
  typeof value === "object" &&
  value !== null &&
  "sql" in value &&
  typeof value.sql === "string" &&
  (!("params" in value) || value.params === undefined || Array.isArray(value.params));

/** The statements in a request of the D1 client. Undefined for any other body, which a script can send too. */
async function statementsIn(request: Request): Promise<Statement | Statement[] | undefined> {
  const asked: unknown = await request.json().catch(() => undefined);
  if (Array.isArray(asked)) return asked.every(isStatement) ? asked : undefined;
  return isStatement(asked) ? asked : undefined;
}

/** Decodes the next bytes, or the end. Throws for bytes that are not UTF-8, because they would be stored changed. */
function textOf(decoder: TextDecoder, bytes: Uint8Array | undefined): string {
  try {
    return bytes === undefined ? decoder.decode() : decoder.decode(bytes, { stream: true });
  } catch {
    throw new Error("Expected a file of UTF-8 text");
  }
}

/** The message of the error that the function throws; undefined if it throws none. */
function messageOf(work: () => void): string | undefined {
  try {
    work();
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

const failure = (error: string): Failure => ({ success: false, error });

/** For `NONE`, which `run` and `exec` ask for, the public service returns rows as objects. */
const formatOf = (query: string): Format =>
  query === "resultsFormat=ROWS_AND_COLUMNS" ? "ROWS_AND_COLUMNS" : "ARRAY_OF_OBJECTS";

/** The path and the query of a URL that the platform has made, without the cost of a `URL`. */
function partsOf(url: string): [path: string, query: string] {
  const path = url.slice(url.indexOf("/", "https://".length));
  const at = path.indexOf("?");
  return at < 0 ? [path, ""] : [path.slice(0, at), path.slice(at + 1)];
}

/** Splits a text into statements. Each takes its values from the list in turn. */
function statementsOf({ sql, params = [] }: Statement): Statement[] {
  const texts = splitStatements(sql);
  if (texts.length <= 1) return [{ sql, params }];
  let at = 0;
  return texts.map((text, i) => {
    const count = countParameters(text);
    const end = i === texts.length - 1 ? params.length : at + count;
    const taken = params.slice(at, end);
    at = end;
    return { sql: text, params: taken };
  });
}
