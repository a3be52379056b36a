import { sql } from "kysely";
import type { Read } from "../storage/storage.ts";
import type { Base } from "./bases.ts";
import { contentsOf, type Catalog, type SegmentContents } from "./catalog.ts";
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

type Part = { segment: Omit<WrittenSegment, "number"> & SegmentContents } | { base: Base };

const rowsMax = 1000;

/**
 * The order of a log that several nodes write, in PostgreSQL. A part belongs to the log only with its row, and a row is
 * added only while the lease lasts: the statement locks the row of the lease, so that a lease which another node has ended
 * adds nothing afterwards. Bytes that a suspended node uploads late are in no row, so they are never read.
 */
export class SharedOrder implements LogOrder {
  readonly #read: Read;
  readonly #catalog: Catalog;
  readonly #lease: LogLease;
  readonly #onSynced: (last: Stamp) => void;
  #syncing: Promise<void> | undefined;

  constructor(read: Read, catalog: Catalog, lease: LogLease, onSynced: (last: Stamp) => void) {
    this.#read = read;
    this.#catalog = catalog;
    this.#lease = lease;
    this.#onSynced = onSynced;
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
    await sql`delete from object_log where part = ${textOf({ base })}`.execute(this.#read);
    this.#catalog.removeBase(base);
  }

  /** Tells the catalog of everything that any node has added. */
  async sync(): Promise<void> {
    // A call that began before may have read too early.
    await this.#syncing?.catch(() => {});
    this.#syncing ??= this.#sync().finally(() => (this.#syncing = undefined));
    return this.#syncing;
  }

  async #append(part: Part, right: LogRight): Promise<void> {
    const { rows } = await sql<{ number: number }>`
      with lease as (select id from object_nodes where id = ${right ?? null} and has_ended = 0 for share),
        head as (update object_log_head set number = number + 1 where exists (select 1 from lease)
          returning number)
      insert into object_log (number, part) select number, ${textOf(part)} from head
      returning number`.execute(this.#read);
    if (rows.length === 0) throw new LeaseEnded();
    const { number } = rows[0]!;
    if (number === this.#catalog.syncedTo + 1 && this.#syncing === undefined) this.#take(number, part);
    else await this.sync();
  }

  async #sync(): Promise<void> {
    for (;;) {
      const { rows } = await sql<{ number: number; part: string }>`
        select number, part from object_log where number > ${this.#catalog.syncedTo}
        order by number limit ${rowsMax}`.execute(this.#read);
      for (const { number, part } of rows) this.#take(number, JSON.parse(part) as Part);
      if (rows.length < rowsMax) break;
    }
    this.#onSynced(this.#catalog.lastStamp);
  }

  #take(number: number, part: Part): void {
    if (number <= this.#catalog.syncedTo) return;
    if ("base" in part) this.#catalog.addBase(part.base);
    else this.#catalog.add({ number, path: part.segment.path, stamp: part.segment.stamp }, part.segment);
    this.#catalog.syncedTo = number;
  }
}

/** The same text for the same part. */
function textOf(part: Part): string {
  if (!("base" in part)) return JSON.stringify(part);
  const { namespace, name, start, stamp, part: file } = part.base;
  const { path, bytes, sha256 } = file;
  return JSON.stringify({ base: { namespace, name, start, stamp, part: { path, bytes, sha256 } } });
}
