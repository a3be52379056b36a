import { sql } from "kysely";
import type { Read } from "../storage/storage.ts";
import type { Base } from "./bases.ts";
import { contentsOf, noMark, type Catalog, type EndedFile, type SegmentContents } from "./catalog.ts";
import type { LogOrder, LogRight, WrittenSegment } from "./log-order.ts";
import type { Entry } from "./segment.ts";
import type { Stamp } from "./stamps.ts";

/** The lease under which this node runs objects (object-shards/lease.ts). */
export interface LogLease {
  readonly current: number | undefined;
  isOwn(namespace: string): boolean;
}

/** The lease has ended, so nothing may be added to the log. */
export class LeaseEnded extends Error {
  constructor() {
    super("The lease of this node on shards of objects has ended");
  }
}

/** The database does not have a part any more that this node knows, as after a failover to a server that lagged behind. */
export class LogRewritten extends Error {
  constructor() {
    super("The log of objects in the database lacks a part that this node has seen");
  }
}

/** Of the node that reads the log. */
export interface LogReader {
  /** All parts are known, up to this stamp. */
  synced(last: Stamp): void;
  /**
   * The log is not the one that was read before: these files end differently in it. `hasLoss`: it lacks parts that were not
   * removed because of their age.
   */
  rewritten(files: readonly EndedFile[], hasLoss: boolean): void;
}

/** A part of the log, which is the text of a row. */
export type LogPart = { segment: Omit<WrittenSegment, "number"> & SegmentContents } | { base: Base };

const rowsMax = 1000;

/**
 * The order of a log that several nodes write, in PostgreSQL. A part belongs to the log only with its row, and a row is
 * added only while the lease lasts: the statement locks the row of the lease, so that a lease which another node has ended
 * adds nothing afterwards. Bytes that a suspended node uploads late are in no row, so they are never read.
 * Each row has a mark, and a node notes that of the last row that it knows. Numbers are given out again after a failover to
 * a server that lagged behind, marks never: so a node finds that rows are gone, reads the log again, and adds nothing before.
 */
export class SharedOrder implements LogOrder {
  readonly #read: Read;
  readonly #catalog: Catalog;
  readonly #lease: LogLease;
  readonly #reader: LogReader;
  #syncing: Promise<void> | undefined;

  constructor(read: Read, catalog: Catalog, lease: LogLease, reader: LogReader) {
    this.#read = read;
    this.#catalog = catalog;
    this.#lease = lease;
    this.#reader = reader;
  }

  right(): LogRight {
    const { current } = this.#lease;
    if (current === undefined) throw new LeaseEnded();
    return current;
  }

  isOwn(namespace: string): boolean {
    return this.#lease.isOwn(namespace);
  }

  /** The owner of the first shard does. */
  prunes(): boolean {
    return this.#lease.current !== undefined && this.#lease.isOwn("0".repeat(32));
  }

  async add({ path, stamp }: WrittenSegment, entries: readonly Entry[], right: LogRight): Promise<void> {
    await this.#append({ segment: { path, stamp, ...contentsOf(entries) } }, right);
  }

  async addBase(base: Base, right: LogRight): Promise<void> {
    await this.#append({ base }, right);
  }

  async removeSegment(number: number): Promise<void> {
    await sql`delete from object_log where number = ${number}`.execute(this.#read);
    this.#catalog.removeSegment(number);
  }

  async removeBase(base: Base): Promise<void> {
    await sql`delete from object_log where part = ${canonicalText({ base })}`.execute(this.#read);
    this.#catalog.removeBase(base);
  }

  /** Tells the catalog of everything that any node has added. */
  async sync(): Promise<void> {
    // A call that began before may have read too early.
    await this.#syncing?.catch(() => {});
    this.#syncing ??= this.#sync().finally(() => (this.#syncing = undefined));
    return this.#syncing;
  }

  async #append(part: LogPart, right: LogRight): Promise<void> {
    if (this.#catalog.isBegunAgain) return this.#refuseUntilRead();
    const { synced } = this.#catalog;
    const { rows } = await sql<{ hasLease: boolean; number: number | null; mark: string | null }>`
      with lease as (select id from object_nodes where id = ${right ?? null} and has_ended = 0 for share),
        known as (select where ${synced.number} = 0
          or exists (select from object_log where number = ${synced.number} and mark = ${synced.mark})),
        head as (update object_log_head set number = number + 1
          where exists (select from lease) and exists (select from known) returning number),
        added as (insert into object_log (number, part) select number, ${canonicalText(part)} from head
          returning number, mark)
      select exists (select from lease) as "hasLease", number, mark
      from (values (1)) as one left join added on true`.execute(this.#read);
    const { hasLease, number, mark } = rows[0]!;
    if (!hasLease) throw new LeaseEnded();
    if (number === null || mark === null) return this.#refuseUntilRead();
    const isNext = this.#syncing === undefined && number === this.#catalog.synced.number + 1;
    if (isNext) this.#take({ number, mark, part });
    else await this.sync();
  }

  /** Reads the log before anything is added: the part may continue one that is lost. */
  async #refuseUntilRead(): Promise<never> {
    await this.sync();
    throw new LogRewritten();
  }

  async #sync(): Promise<void> {
    let hasLoss = this.#catalog.isBegunAgain; // before a restart
    for (;;) {
      const { synced } = this.#catalog;
      const { rows } = await sql<{ number: number; mark: string; part: string }>`
        select number, mark, part from object_log where number >= ${synced.number}
        order by number limit ${rowsMax}`.execute(this.#read);
      const [first] = rows;
      if (synced.number > 0 && (first?.number !== synced.number || first.mark !== synced.mark)) {
        hasLoss ||= first === undefined || (first.number === synced.number && synced.mark !== noMark);
        this.#catalog.beginAgain();
        continue;
      }
      for (const row of rows) this.#take({ ...row, part: JSON.parse(row.part) as LogPart });
      if (rows.length < rowsMax) break;
    }
    this.#reader.synced(this.#catalog.lastStamp);
    if (this.#catalog.isBegunAgain) this.#reader.rewritten(this.#catalog.endAgain(), hasLoss);
  }

  #take({ number, mark, part }: { number: number; mark: string; part: LogPart }): void {
    if (number <= this.#catalog.synced.number) return;
    addPart(this.#catalog, number, part);
    this.#catalog.synced = { number, mark };
  }
}

/** Adds a part to a catalog. */
export function addPart(catalog: Catalog, number: number, part: LogPart): void {
  if ("base" in part) catalog.addBase(part.base);
  else catalog.add({ number, path: part.segment.path, stamp: part.segment.stamp }, part.segment);
}

/** The same text for the same part. */
export function canonicalText(part: LogPart): string {
  if (!("base" in part)) return JSON.stringify(part);
  const { namespace, name, start, stamp, part: file } = part.base;
  const { path, bytes, sha256 } = file;
  return JSON.stringify({ base: { namespace, name, start, stamp, part: { path, bytes, sha256 } } });
}
