import { createHash } from "node:crypto";
import type { Readable } from "node:stream";
import { PassThrough } from "node:stream";
import type { Logger } from "pino";
import { DomainError } from "../../../platform/domain-error.ts";
import type { Blobs } from "../../../platform/storage/blobs.ts";
import { randomText } from "../../../platform/util/ids.ts";
import { unawaited } from "../../../platform/util/uncaught.ts";
import type { DatabaseCalls } from "../calls.ts";
import { databaseLimits, namespaceOf, type D1Database } from "../database.ts";
import { d1Errors } from "../errors.ts";
import { clock } from "../../../platform/timers/clock.ts";

/** A link that needs no credentials, to upload or to download one file. */
interface Link {
  kind: "upload" | "download";
  database: D1Database;
  filename: string;
  /** For an upload, the MD5 of its bytes in hexadecimal. */
  etag: string;
  expiresOn: number;
  /** Whether a file is being uploaded to the link. */
  isTaken: boolean;
}

/** The parameters of a call to a link. */
export interface LinkRequest {
  accountId: string;
  filename: string;
  token: string;
}

/** An import or an export. */
export interface Job {
  kind: "import" | "export";
  database: D1Database;
  /** The state of the database at the beginning of the job, by which clients ask for the job. */
  bookmark: string;
  filename: string;
  status: "active" | "complete" | "error";
  error: string | undefined;
  imported: Imported | undefined;
  done: Promise<void>;
}

interface Imported {
  num_queries: number;
  rows_read: number;
  rows_written: number;
  size_after: number;
  bookmark: string;
  durationMs: number;
}

/** As in the public API. */
const linkMs = 60 * 60 * 1000;
/** Maximum number of links of an account. Further ones replace the oldest. */
const linksOfAccountMax = 1000;

/**
 * Imports and exports of databases. Files are blobs; links and jobs are in memory, so clients begin again after a
 * restart.
 */
export class Transfers {
  readonly #calls: DatabaseCalls;
  readonly #blobs: Blobs;
  readonly #logger: Logger;
  readonly #links = new Map<string, Link>();
  /** The tokens of each account's links, oldest first. */
  readonly #tokens = new Map<string, Set<string>>();
  /** The last job of each kind, by kind and database. */
  readonly #jobs = new Map<string, Job>();

  constructor(calls: DatabaseCalls, blobs: Blobs, logger: Logger) {
    this.#logger = logger;
    this.#calls = calls;
    this.#blobs = blobs;
  }

  /** Begins an import. The token is undefined if the file with this MD5 is stored already. */
  async init(database: D1Database, etag: string): Promise<{ filename: string; token: string | undefined }> {
    const filename = `${etag}.sql`;
    if ((await this.#blobs.head(blobKey(database, filename))) !== undefined)
      return { filename, token: undefined };
    return { filename, token: this.#link("upload", database, filename, etag) };
  }

  /** Receives the file of an import. */
  async receive(given: LinkRequest, content: AsyncIterable<Uint8Array>): Promise<Link> {
    const link = this.#find("upload", given);
    if (link.isTaken) throw d1Errors.busy("import");
    link.isTaken = true;
    try {
      await this.#put(link, content);
    } finally {
      link.isTaken = false;
    }
    this.#forgetLink(given.token);
    return link;
  }

  async #put(link: Link, content: AsyncIterable<Uint8Array>): Promise<void> {
    const key = blobKey(link.database, link.filename);
    const hash = createHash("md5");
    let bytes = 0;
    async function* hashed(): AsyncGenerator<Uint8Array> {
      for await (const chunk of content) {
        bytes += chunk.length;
        if (bytes > databaseLimits.importBytesMax) throw d1Errors.fileTooLarge();
        hash.update(chunk);
        yield chunk;
      }
      // Checked before the content is stored under its key.
      if (hash.digest("hex") !== link.etag) throw d1Errors.etag();
    }
    await this.#blobs.put(key, hashed());
  }

  /** Runs the statements of an uploaded file. */
  async ingest(database: D1Database, filename: string, etag: string): Promise<Job> {
    const key = blobKey(database, filename);
    const found = filename === `${etag}.sql` ? await this.#blobs.head(key) : undefined;
    if (found === undefined) throw d1Errors.noFile(filename);
    return this.#begin("import", database, filename, async (job) => {
      const begin = performance.now();
      // Opened inside the job, so that a job that cannot begin leaves no file open.
      const blob = await this.#blobs.get(key);
      if (blob === undefined) throw d1Errors.noFile(filename);
      try {
        const { value, bookmark } = await this.#calls.give<Omit<Imported, "bookmark" | "durationMs">>(
          database,
          "/import",
          blob.stream,
        );
        job.imported = { ...value, bookmark, durationMs: performance.now() - begin };
      } finally {
        blob.stream.destroy();
        await this.#blobs.delete(key);
      }
    });
  }

  /** Writes the database as SQL text. */
  async export(database: D1Database, options: object): Promise<Job> {
    const filename = `${randomText(16, "hex")}.sql`;
    return this.#begin("export", database, filename, async () => {
      const content = new Collecting();
      const body = Buffer.from(JSON.stringify(options));
      const send = async (): Promise<void> => {
        try {
          await this.#calls.send(database, { path: "/dump", body, isRead: () => false }, content);
        } catch (error) {
          content.destroy(error as Error);
          throw error;
        }
      };
      await Promise.all([send(), this.#blobs.put(blobKey(database, filename), content)]);
    });
  }

  /** The last job of a kind. Throws if it did not begin at this bookmark. */
  job(kind: Job["kind"], database: D1Database, bookmark: string): Job {
    const job = this.#jobs.get(jobKey(kind, database));
    if (job?.bookmark !== bookmark) throw d1Errors.noJob(kind);
    return job;
  }

  /** A link to the file of an export. */
  downloadOf({ database, filename }: Job): string {
    return this.#link("download", database, filename, "");
  }

  async download(given: LinkRequest): Promise<{ filename: string; stream: Readable; bytes: number }> {
    const { database, filename } = this.#find("download", given);
    const blob = await this.#blobs.get(blobKey(database, filename));
    if (blob === undefined) throw d1Errors.noTransfer();
    return { filename, stream: blob.stream, bytes: blob.sizeBytes };
  }

  /** Removes the links, jobs and files of a deleted database. */
  async forget(database: D1Database): Promise<void> {
    for (const [token, link] of this.#links) if (link.database.id === database.id) this.#forgetLink(token);
    for (const kind of ["import", "export"] as const) this.#jobs.delete(jobKey(kind, database));
    await this.#blobs.deleteFolder(`d1/${namespaceOf(database)}`);
  }

  /** Removes files whose links have expired; called by a timer. */
  async tidy(now = clock.now()): Promise<void> {
    for (const [token, { expiresOn }] of this.#links) if (expiresOn < now) this.#forgetLink(token);
    const named = new Set(
      [...this.#links.values()].map(({ database, filename }) => blobKey(database, filename)),
    );
    await this.#blobs.removeUnnamed(
      "d1",
      now - 2 * linkMs,
      async (keys) => new Set(keys.filter((key) => named.has(key))),
    );
  }

  /** The token of a new link to a file, or of an existing one, which is then extended. */
  #link(kind: Link["kind"], database: D1Database, filename: string, etag: string): string {
    const tokens = this.#tokens.get(database.accountId) ?? new Set<string>();
    this.#tokens.set(database.accountId, tokens);
    const expiresOn = clock.now() + linkMs;
    for (const token of tokens) {
      const link = this.#links.get(token)!;
      if (link.kind !== kind || link.database.id !== database.id || link.filename !== filename) continue;
      link.expiresOn = expiresOn;
      return token;
    }
    if (tokens.size >= linksOfAccountMax) this.#forgetLink(tokens.values().next().value!);
    const token = randomText(24, "base64url");
    this.#links.set(token, { kind, database, filename, etag, expiresOn, isTaken: false });
    this.#tokens.set(database.accountId, tokens.add(token));
    return token;
  }

  #forgetLink(token: string): void {
    const accountId = this.#links.get(token)?.database.accountId;
    this.#links.delete(token);
    if (accountId === undefined) return;
    const tokens = this.#tokens.get(accountId);
    tokens?.delete(token);
    if (tokens?.size === 0) this.#tokens.delete(accountId);
  }

  #find(kind: Link["kind"], { accountId, filename, token }: LinkRequest): Link {
    const link = this.#links.get(token);
    const isMeant =
      link?.kind === kind && link.filename === filename && link.database.accountId === accountId;
    if (!isMeant || link.expiresOn < clock.now()) throw d1Errors.noTransfer();
    return link;
  }

  async #begin(
    kind: Job["kind"],
    database: D1Database,
    filename: string,
    work: (job: Job) => Promise<void>,
  ): Promise<Job> {
    const key = jobKey(kind, database);
    if (this.#jobs.get(key)?.status === "active") throw d1Errors.busy(kind);
    const { promise, resolve } = Promise.withResolvers<void>();
    const job: Job = {
      kind,
      database,
      bookmark: "",
      filename,
      status: "active",
      error: undefined,
      imported: undefined,
      done: promise,
    };
    this.#jobs.set(key, job);
    try {
      const { bookmark } = await this.#calls.ask(database, "/facts", {}, { isRead: true });
      job.bookmark = bookmark;
    } catch (error) {
      this.#jobs.delete(key);
      throw error;
    }
    unawaited(
      work(job)
        .then(
          () => (job.status = "complete"),
          (error: unknown) => {
            if (!(error instanceof DomainError))
              this.#logger.error({ err: error, database: database.id }, failed);
            job.error = error instanceof DomainError ? error.message : `The ${kind} failed.`;
            job.status = "error";
          },
        )
        .then(() => resolve()),
    );
    return job;
  }
}

const failed = "an import or an export of a D1 database failed";
const jobKey = (kind: string, { id }: D1Database): string => `${kind} ${id}`;
const blobKey = (database: D1Database, filename: string): string => `d1/${namespaceOf(database)}/${filename}`;

/** A response that passes its body on as a stream. */
class Collecting extends PassThrough {
  headersSent = false;

  writeHead(): this {
    this.headersSent = true;
    return this;
  }
}
