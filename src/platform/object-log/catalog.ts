import { DatabaseSync, type StatementSync } from "node:sqlite";
import type { Part } from "../storage/archive/archive.ts";
import type { ObjectFile } from "../storage/live-files/object-files.ts";
import type { TailPosition } from "../storage/live-files/log-tail.ts";
import { inTransaction } from "../storage/sqlite.ts";
import type { Base } from "./bases.ts";
import type { Entry } from "./segment.ts";
import { noStamp, type Stamp } from "./stamps.ts";

/** How far the write-ahead log of a file is shipped. */
export interface FileState {
  position: TailPosition | undefined;
  isSealed: boolean;
  /** Before the first frame in the file's log since its last restart. */
  logStart: Stamp;
  /** Stamp of the newest base. */
  base: Stamp | undefined;
  bytesSinceBase: number;
  /** Size and modification time of the file after its log was moved into it completely. */
  facts: string | undefined;
}

export interface StoredSegment {
  number: number;
  path: string;
  stamp: Stamp;
}

/** A part of a log that several nodes share: its number, and a text that no other part ever has. */
export interface LogMark {
  number: number;
  mark: string;
}

/** Instead of the mark of a part that was read before parts had marks. */
export const noMark = "";

/** A file, and whether its last entry was its deletion. */
export type EndedFile = ObjectFile & { isGone: boolean };

/** The files that a segment is about: of changes the first and the last stamp, of bases the stamp, the start, and 1 for `gone`. */
export interface SegmentContents {
  changes: readonly (readonly [namespace: string, name: string, first: Stamp, last: Stamp])[];
  bases: readonly (readonly [namespace: string, name: string, stamp: Stamp, start: Stamp, isGone: 0 | 1])[];
}

export function contentsOf(entries: readonly Entry[]): SegmentContents {
  const bases: SegmentContents["bases"][number][] = [];
  const spans = new Map<string, [string, string, Stamp, Stamp]>();
  for (const { namespace, name, kind, stamp, start } of entries) {
    const span = spans.get(`${namespace}/${name}`);
    if (span === undefined) spans.set(`${namespace}/${name}`, [namespace, name, stamp, stamp]);
    else span[3] = stamp;
    if (kind === "base" || kind === "gone")
      bases.push([namespace, name, stamp, start ?? stamp, kind === "gone" ? 1 : 0]);
  }
  return { changes: [...spans.values()], bases };
}

/** Where a base is: in a file of its own, or in an entry of a segment. */
export type FoundBase = ObjectFile & { start: Stamp; stamp: Stamp } & (
    | { part: Part; segment: null; isGone: false }
    | { part: null; segment: string; isGone: boolean }
  );

const schema = `
create table if not exists segments (number integer primary key, path text not null, stamp text not null);
create table if not exists changes (namespace text, name text, segment integer, first text not null, last text not null,
  primary key (namespace, name, segment));
create index if not exists changes_of_segment on changes (segment);
create table if not exists bases (namespace text, name text, stamp text, start text not null, segment integer, part text, gone integer not null,
  primary key (namespace, name, stamp));
create table if not exists files (namespace text, name text, state text not null, primary key (namespace, name));
create table if not exists lost_deletions (namespace text, name text, stamp text not null, primary key (namespace, name));
create table if not exists synced (number integer not null, mark text not null);
insert into synced select user_version, '' from pragma_user_version where not exists (select * from synced);`;

/** By file: the stamp of its last change or base, with a 1 behind it if that deleted the file. */
const ends = `select namespace, name, max(stamp || ' ' || gone) as last from (
    select namespace, name, last as stamp, 0 as gone from changes union all select namespace, name, stamp, gone from bases)
    group by namespace, name`;

/**
 * An index of the segments and bases in the store of the log, by file of an object: a SQLite database in the
 * data folder. A loss of power may take its last transactions, in their order: they are read from that store again.
 */
export class Catalog {
  readonly #database: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();

  constructor(path: string) {
    this.#database = new DatabaseSync(path);
    this.#database.exec(`pragma journal_mode = wal; pragma synchronous = normal; ${schema}`);
  }

  close(): void {
    this.#database.close();
  }

  get lastSegment(): StoredSegment | undefined {
    return this.#get("select * from segments order by number desc limit 1") as StoredSegment | undefined;
  }

  get lastStamp(): Stamp {
    const row = this.#get(
      "select max(stamp) as stamp from (select stamp from segments union all select stamp from bases)",
    );
    return (row?.["stamp"] as Stamp | null) ?? noStamp;
  }

  has(number: number): boolean {
    return this.#get("select 1 from segments where number = ?", number) !== undefined;
  }

  segments(): StoredSegment[] {
    return this.#all("select * from segments order by number") as unknown as StoredSegment[];
  }

  /** The last part that it knows of a log that several nodes share. */
  get synced(): LogMark {
    return this.#get("select number, mark from synced") as unknown as LogMark;
  }

  set synced({ number, mark }: LogMark) {
    this.#run("update synced set number = ?, mark = ?", number, mark);
  }

  /** Forgets all parts, because the log is not the one that it has read, and notes where each file ended. */
  beginAgain(): void {
    inTransaction(this.#database, () => {
      if (!this.isBegunAgain) this.#database.exec(`create table ends as ${ends}`);
      this.#database.exec("delete from segments; delete from changes; delete from bases");
      this.synced = { number: 0, mark: noMark };
    });
  }

  /** Whether `beginAgain` was called and `endAgain` not yet, also before a restart. */
  get isBegunAgain(): boolean {
    return this.#get("select 1 from sqlite_master where name = 'ends'") !== undefined;
  }

  /**
   * Call it when all parts are known again. Returns the files that end differently now, and forgets their states. A deleted
   * file that the log does not know any more is as it was.
   */
  endAgain(): EndedFile[] {
    return inTransaction(this.#database, () => {
      const found = this.#database
        .prepare(
          `select namespace, name, substr(ends.last, 1, length(ends.last) - 2) as stamp, ends.last like '% 1' as isGone
           from ends left join (${ends}) as now using (namespace, name)
           where now.last is not ends.last and not (isGone and now.last is null)`,
        )
        .all() as unknown as (ObjectFile & { stamp: Stamp; isGone: 0 | 1 })[];
      for (const { namespace, name, stamp, isGone } of found) {
        this.removeState({ namespace, name });
        if (isGone === 1)
          this.#run("insert or replace into lost_deletions values (?, ?, ?)", namespace, name, stamp);
      }
      this.#database.exec("drop table ends");
      return found.map(({ namespace, name, isGone }) => ({ namespace, name, isGone: isGone === 1 }));
    });
  }

  /** The files whose deletions the log has lost, and which have no later part yet. */
  lostDeletions(): ObjectFile[] {
    return this.#all("select namespace, name from lost_deletions") as unknown as ObjectFile[];
  }

  #endLostDeletion({ namespace, name }: ObjectFile, stamp: Stamp): void {
    this.#run(
      "delete from lost_deletions where namespace = ? and name = ? and stamp < ?",
      ...[namespace, name, stamp],
    );
  }

  add(segment: StoredSegment, { changes, bases }: SegmentContents): void {
    inTransaction(this.#database, () => {
      const { number, path, stamp } = segment;
      this.#run("insert or replace into segments values (?, ?, ?)", number, path, stamp);
      for (const [namespace, name, at, start, isGone] of bases)
        this.#run(
          "insert or replace into bases values (?, ?, ?, ?, ?, null, ?)",
          ...[namespace, name, at, start, number, isGone],
        );
      for (const [namespace, name, first, last] of changes) {
        this.#run(
          "insert or replace into changes values (?, ?, ?, ?, ?)",
          ...[namespace, name, number, first, last],
        );
        this.#endLostDeletion({ namespace, name }, last);
      }
    });
  }

  addBase({ namespace, name, stamp, start, part }: Base): void {
    this.#run(
      "insert or replace into bases values (?, ?, ?, ?, null, ?, 0)",
      ...[namespace, name, stamp, start, JSON.stringify(part)],
    );
    this.#endLostDeletion({ namespace, name }, stamp);
  }

  stateOf({ namespace, name }: ObjectFile): FileState | undefined {
    const row = this.#get("select state from files where namespace = ? and name = ?", namespace, name);
    return row && (JSON.parse(row["state"] as string) as FileState);
  }

  putStates(states: Iterable<ObjectFile & { state: FileState }>): void {
    inTransaction(this.#database, () => {
      for (const { namespace, name, state } of states)
        this.#run("insert or replace into files values (?, ?, ?)", namespace, name, JSON.stringify(state));
    });
  }

  removeState({ namespace, name }: ObjectFile): void {
    this.#run("delete from files where namespace = ? and name = ?", namespace, name);
  }

  /** Forgets how far the logs of files are shipped. */
  removeStates(): void {
    this.#run("delete from files");
  }

  /** Forgets what it notes of the files here of a namespace: another node had newer ones. */
  removeNotes(namespace: string): void {
    for (const table of ["files", "lost_deletions"])
      this.#run(`delete from ${table} where namespace = ?`, namespace);
  }

  /** The files of an object, or all. `prefix` is the id of an object and a dot. */
  files(namespace?: string, prefix = ""): ObjectFile[] {
    const rows =
      namespace === undefined
        ? this.#all("select distinct namespace, name from bases")
        : this.#all(
            "select distinct namespace, name from bases where namespace = ? and substr(name, 1, ?) = ?",
            ...[namespace, prefix.length, prefix],
          );
    return rows as unknown as ObjectFile[];
  }

  /** Whether a file of a namespace is not deleted. */
  hasData(namespace: string): boolean {
    const row = this.#get(
      `select 1 from bases b where namespace = ? and gone = 0 and not exists
       (select 1 from bases later where (later.namespace, later.name) = (b.namespace, b.name) and later.stamp > b.stamp)`,
      namespace,
    );
    return row !== undefined;
  }

  /** The newest base of a file at or before a moment. */
  baseOf({ namespace, name }: ObjectFile, at: Stamp): FoundBase | undefined {
    const row = this.#get(
      `select b.*, s.path from bases b left join segments s on s.number = b.segment
       where b.namespace = ? and b.name = ? and b.stamp <= ? order by b.stamp desc limit 1`,
      ...[namespace, name, at],
    );
    if (row === undefined) return undefined;
    const found = { namespace, name, start: row["start"] as string, stamp: row["stamp"] as string };
    return row["part"] === null
      ? { ...found, part: null, segment: row["path"] as string, isGone: row["gone"] === 1 }
      : { ...found, part: JSON.parse(row["part"] as string) as Part, segment: null, isGone: false };
  }

  /** The moment after which a file needs all segments, if it keeps all of its bases. */
  firstStartOf({ namespace, name }: ObjectFile): Stamp | undefined {
    const row = this.#get(
      "select min(min(start, stamp)) as first from bases where namespace = ? and name = ?",
      ...[namespace, name],
    );
    return (row?.["first"] as Stamp | null) ?? undefined;
  }

  firstBaseOf({ namespace, name }: ObjectFile): Stamp | undefined {
    const row = this.#get(
      "select min(stamp) as first from bases where namespace = ? and name = ?",
      namespace,
      name,
    );
    return (row?.["first"] as Stamp | null) ?? undefined;
  }

  /** The segments with changes of a file after `start`, up to `at`, in order. */
  segmentsOf({ namespace, name }: ObjectFile, start: Stamp, at: Stamp): string[] {
    return this.#all(
      `select s.path from changes c join segments s on s.number = c.segment
       where c.namespace = ? and c.name = ? and c.last > ? and c.first <= ? order by c.segment`,
      ...[namespace, name, start, at],
    ).map(({ path }) => path as string);
  }

  /** The stamp of a file's last change. */
  lastChangeOf({ namespace, name }: ObjectFile): Stamp | undefined {
    const row = this.#get(
      "select max(last) as last from changes where namespace = ? and name = ?",
      namespace,
      name,
    );
    return (row?.["last"] as Stamp | null) ?? undefined;
  }

  /** The bases of a file with stamps before this one. */
  olderBases({ namespace, name }: ObjectFile, before: Stamp): (Omit<Base, "part"> & { part: Part | null })[] {
    return this.#all(
      "select * from bases where namespace = ? and name = ? and stamp < ?",
      ...[namespace, name, before],
    ).map(({ start, stamp, part }) => ({
      namespace,
      name,
      start: start as string,
      stamp: stamp as string,
      part: JSON.parse((part as string | null) ?? "null") as Part | null,
    }));
  }

  removeBase({ namespace, name, stamp }: Pick<Base, "namespace" | "name" | "stamp">): void {
    this.#run("delete from bases where namespace = ? and name = ? and stamp = ?", namespace, name, stamp);
  }

  removeSegment(number: number): void {
    inTransaction(this.#database, () => {
      this.#run("delete from changes where segment = ?", number);
      this.#run("delete from segments where number = ?", number);
    });
  }

  /** Forgets a file whose data is deleted for good. */
  removeFile({ namespace, name }: ObjectFile): void {
    for (const table of ["changes", "bases", "files", "lost_deletions"])
      this.#run(`delete from ${table} where namespace = ? and name = ?`, namespace, name);
  }

  #statement(sql: string): StatementSync {
    let statement = this.#statements.get(sql);
    if (statement === undefined) this.#statements.set(sql, (statement = this.#database.prepare(sql)));
    return statement;
  }

  #run(sql: string, ...values: (string | number | null)[]): void {
    this.#statement(sql).run(...values);
  }

  #get(sql: string, ...values: (string | number)[]): Record<string, unknown> | undefined {
    return this.#statement(sql).get(...values);
  }

  #all(sql: string, ...values: (string | number)[]): Record<string, unknown>[] {
    return this.#statement(sql).all(...values);
  }
}
