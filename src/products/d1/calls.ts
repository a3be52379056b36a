import type { Readable } from "node:stream";
import { PreparedJson } from "../../control/api/envelope.ts";
import type { DomainError } from "../../platform/domain-error.ts";
import { CellError, ObjectRefusal } from "../../sandbox/errors.ts";
import type { Answerable } from "../../sandbox/gateway/exchange.ts";
import type { RunHooks } from "../../sandbox/gateway/run-hooks.ts";
import type { ObjectTarget } from "../../sandbox/objects/object-cells-options.ts";
import type { ObjectCells } from "../../sandbox/objects/object-cells.ts";
import type { ObjectHost } from "../../sandbox/process/object-config.ts";
import { throwInScript } from "../../workers/binding.ts";
import { CollectedResponse } from "../../workers/runtime/collected-response.ts";
import { platformGroupOf } from "../../workers/objects/namespaces.ts";
import { bookmarkOf, databaseLimits, objectOf, type D1Database } from "./database.ts";
import { d1Errors } from "./errors.ts";
import type { SendAtOwner } from "./nodes/owner-calls.ts";
import { readFigures, type DatabaseUsage } from "./usage/usage.ts";

/** In the object's responses: the figures of the queries. */
const usageHeader = "x-cf-d1-usage";
/** In the object's responses the number of writes, and in those to clients a bookmark. */
const bookmarkHeader = "x-cf-d1-session-commit-token";

const host: ObjectHost = {
  module: "products/d1/worker/database.js",
  className: "DatabaseObject",
  parts: [
    "products/d1/worker/dump.js",
    "products/d1/worker/is-read.js",
    "products/d1/worker/json-bytes.js",
    "products/d1/worker/run-statements.js",
    "products/d1/worker/split.js",
  ],
};

export interface DatabaseCall {
  path: string;
  body: Uint8Array | Readable;
  /** Whether the call only reads, so that it may be sent again after a fault. */
  isRead: () => boolean;
}

export interface DatabaseResult<T> {
  value: T;
  bookmark: string;
}

/** Objects of databases make no requests. */
const hooks = (): RunHooks => ({
  fetch: (_url, _request, response) => throwInScript(response, { message: "A database makes no requests." }),
});

/** A failed read is repeated once. The database then has a dedicated cell if it may have caused the fault. */
const attemptsMax = 2;

/** The log that the writes of databases are shipped to. */
export interface DatabaseLog {
  /** The bookmark of all writes of the database so far. */
  bookmark: (object: ReturnType<typeof objectOf>) => string;
}

/** Sends calls to the objects of databases. */
export class DatabaseCalls {
  readonly #cells: ObjectCells;
  readonly #log: DatabaseLog | undefined;
  readonly #usage: Pick<DatabaseUsage, "note"> | undefined;

  /** Sends calls to the nodes that have the databases; this node, unless they are divided. */
  atOwner: SendAtOwner = async (...given) => this.sendHere(...given);

  constructor(cells: ObjectCells, log?: DatabaseLog, usage?: Pick<DatabaseUsage, "note">) {
    this.#cells = cells;
    this.#usage = usage;
    this.#log = log;
  }

  /** Streams the object's response to `response`. Rejects with an ObjectRefusal that has the public text. */
  async send(database: D1Database, call: DatabaseCall, response: Answerable): Promise<void> {
    try {
      await this.atOwner(database, call, response);
    } catch (error) {
      throw publicError(error);
    }
  }

  /** As `send`, to a database of this node. */
  async sendHere(database: D1Database, call: DatabaseCall, response: Answerable): Promise<void> {
    const { path, body } = call;
    for (let attempt = 1; ; attempt++) {
      try {
        const headers = ["host", "d1", "content-type", "application/json"];
        if (body instanceof Uint8Array) headers.push("content-length", String(body.length));
        await this.#cells.run(targetOf(database), {
          request: { method: "POST", path, headers, body },
          answer: { response, headers: (raw) => this.#responseHeaders(raw, database) },
          hooks,
        });
        return;
      } catch (error) {
        const isFault = error instanceof ObjectRefusal && !error.flags.includes("overloaded");
        const mayRepeat = isFault && attempt < attemptsMax && !response.headersSent && call.isRead();
        if (!mayRepeat) throw error;
      }
    }
  }

  /** Sends JSON and returns the JSON of the response. Rejects with an error for callers of the API. */
  async ask<T>(
    database: D1Database,
    path: string,
    input: unknown,
    { isRead }: { isRead: boolean },
  ): Promise<DatabaseResult<T>> {
    const body = Buffer.from(JSON.stringify(input));
    return this.#collect<T>(database, { path, body, isRead: () => isRead });
  }

  /** As `ask`, for a list of results of up to `answerBytesMax`, which is not parsed here. */
  async results(
    database: D1Database,
    path: string,
    input: unknown,
    { isRead }: { isRead: boolean },
  ): Promise<PreparedJson> {
    const { body } = await this.#collected(database, {
      path,
      body: Buffer.from(JSON.stringify(input)),
      isRead: () => isRead,
    });
    // A failure is an object instead of a list.
    if (body[0] !== listStart) valueOf(body);
    return new PreparedJson(body);
  }

  /** As `ask`, with a stream as the body. */
  async give<T>(database: D1Database, path: string, body: Readable): Promise<DatabaseResult<T>> {
    return this.#collect<T>(database, { path, body, isRead: () => false });
  }

  /** The response headers for clients: with a bookmark, and without the figures, which are counted here. */
  #responseHeaders(raw: readonly string[], database: D1Database): string[] {
    const headers: string[] = [];
    for (let i = 0; i < raw.length; i += 2) {
      const value = raw[i + 1]!;
      const name = raw[i]!.toLowerCase();
      if (name === usageHeader) {
        const figures = readFigures(value);
        if (figures !== undefined) this.#usage?.note(database, figures);
      } else if (name === bookmarkHeader) {
        const bookmark = this.#log?.bookmark(targetOf(database).object);
        headers.push(raw[i]!, bookmark ?? bookmarkOf(database, Number(value)));
      } else headers.push(raw[i]!, value);
    }
    return headers;
  }

  async #collect<T>(database: D1Database, call: DatabaseCall): Promise<DatabaseResult<T>> {
    const { body, bookmark } = await this.#collected(database, call);
    return { value: valueOf(body) as T, bookmark };
  }

  async #collected(database: D1Database, call: DatabaseCall): Promise<Collected> {
    const response = new Collected(databaseLimits.answerBytesMax);
    try {
      await this.send(database, call, response);
    } catch (error) {
      throw error instanceof ObjectRefusal ? refused(error) : error;
    }
    return response;
  }
}

const listStart = "[".charCodeAt(0);

function valueOf(body: Buffer): unknown {
  const value: unknown = JSON.parse(body.toString());
  if (isFailure(value)) throw d1Errors.sql(value.error);
  return value;
}

/** The error for callers of the API: whether they can try again is in its status. */
const refused = ({ flags, message }: ObjectRefusal): DomainError =>
  flags.length > 0 ? d1Errors.unreachable(message) : d1Errors.failed(message);

class Collected extends CollectedResponse {
  bookmark = "";

  override writeHead(status: number, _text?: string, headers: readonly string[] = []): this {
    for (let i = 0; i < headers.length; i += 2)
      if (headers[i]!.toLowerCase() === bookmarkHeader) this.bookmark = headers[i + 1]!;
    return super.writeHead(status);
  }
}

const isFailure = (value: unknown): value is { success: false; error: string } =>
  typeof value === "object" && value !== null && (value as { success?: unknown }).success === false;

/** Cached, because an object's id costs two digests. */
const targets = new WeakMap<D1Database, ObjectTarget>();

function targetOf(database: D1Database): ObjectTarget {
  const known = targets.get(database);
  if (known !== undefined) return known;
  const { accountId } = database;
  const target: ObjectTarget = {
    group: platformGroupOf(accountId),
    host,
    object: {
      ...objectOf(database),
      className: "D1",
      isSqlite: true,
      serial: 0,
      delayMs: 0,
    },
    script: {
      id: "d1",
      owner: `database ${database.id}`,
      accountId,
      profile: "script",
      mainModule: "",
      modules: [],
      compatibilityDate: "",
      compatibilityFlags: [],
      cpuMs: databaseLimits.cpuMs,
      memoryBytes: 0,
      env: {},
    },
  };
  targets.set(database, target);
  return target;
}

/** The public texts name the database instead of the object. */
function publicError(error: unknown): unknown {
  if (error instanceof ObjectRefusal)
    return new ObjectRefusal(error.message.replace("Durable Object", "D1 DB"), ...error.flags);
  if (error instanceof CellError)
    return new ObjectRefusal("D1 DB storage operation failed and the database was reset.", "retryable");
  return error;
}
