import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { BackupError } from "../../platform/storage/archive/errors.ts";
import {
  earliestOf,
  prepareObject,
  replaceFiles,
  type Replacement,
} from "../../platform/object-log/history.ts";
import type { OpenObjectLog } from "../../platform/object-log/open-object-log.ts";
import { MissingFrames } from "../../platform/object-log/states.ts";
import { bookmarkAt, msOf, stampAt, stampOf, type Stamp } from "../../platform/object-log/stamps.ts";
import type { Alarms } from "./alarms/alarms.ts";
import type { ObjectCells } from "../../sandbox/objects/object-cells.ts";
import type { ActingObject } from "../../sandbox/objects/standing.ts";
import { clock } from "../../platform/timers/clock.ts";

/** Why an object cannot be brought back to a moment. The message is for callers. */
export class UnrestorableError extends Error {}

/** Brings objects back to earlier states, from the log of objects. A bookmark names a moment. */
export class ObjectRecovery {
  readonly #log: OpenObjectLog | undefined;
  readonly #folder: string;
  readonly #cells: ObjectCells;
  readonly #days: number;
  readonly #alarms: Alarms;

  /** For calls whose answers have bookmarks; undefined without a log. `flush`: undefined if answers do not wait for it. */
  readonly answers:
    | {
        bookmark: (object: ActingObject) => string;
        flush: ((object: ActingObject) => Promise<void>) | undefined;
      }
    | undefined;

  constructor(
    log: OpenObjectLog | undefined,
    cells: ObjectCells,
    { days, isFirst, alarms, folder }: { days: number; isFirst: boolean; alarms: Alarms; folder: string },
  ) {
    this.answers = log && {
      bookmark: (object) => this.bookmark(object),
      flush: isFirst ? async ({ namespace, id }) => log.log.flush(namespace, id) : undefined,
    };
    this.#log = log;
    this.#alarms = alarms;
    this.#cells = cells;
    this.#days = days;
    this.#folder = folder;
  }

  /** Throws UnrestorableError if the setting is not set. */
  #needed(): OpenObjectLog {
    if (this.#log === undefined)
      throw new UnrestorableError("Earlier states are not kept: the setting object-log is not set");
    return this.#log;
  }

  /** The bookmark of the present state: everything that was committed before the call. */
  bookmark({ namespace, id }: ActingObject): string {
    return bookmarkAt(this.#needed().log.noteAnswer(namespace, id), namespace);
  }

  /** The bookmark of a moment, in milliseconds. Throws UnrestorableError if the log does not go back to it. */
  bookmarkOfTime({ namespace }: ActingObject, ms: number): string {
    this.#needed();
    const now = clock.now();
    if (ms > now) throw new UnrestorableError("Expected a time that is not in the future");
    if (ms < now - this.#days * dayMs)
      throw new UnrestorableError(`Expected a time within the last ${this.#days} days`);
    return bookmarkAt(stampAt(ms), namespace);
  }

  /** The moment of a bookmark. Throws UnrestorableError for one of another object or in the future. */
  momentOf({ namespace }: ActingObject, bookmark: string): Stamp {
    const stamp = stampOf(bookmark, namespace);
    if (stamp === undefined) throw new UnrestorableError("Expected a bookmark of this database or object");
    if (msOf(stamp) > clock.now())
      throw new UnrestorableError("Expected a bookmark that is not in the future");
    return stamp;
  }

  /**
   * Replaces the data of an object by its state at a moment. Requests in progress fail. Returns the bookmarks of the states
   * before and after. Throws UnrestorableError, and then nothing has changed.
   */
  async restore(object: ActingObject, at: Stamp): Promise<{ before: string; after: string }> {
    const { log, folder, notes, ready } = this.#needed();
    const { namespace, id } = object;
    await ready();
    await log.flush(namespace, id);
    return this.#cells.pause(
      namespace,
      () => this.#isClosed(object),
      async () => {
        await log.flush(namespace, id);
        const before = this.bookmark(object);
        const replacements = await this.#prepare(object, at);
        await replaceFiles(folder, notes, replacements);
        for (const file of replacements) log.noteReplaced(file);
        await log.settle();
        this.#alarms.ask(object);
        return { before, after: this.bookmark(object) };
      },
    );
  }

  async #prepare(object: ActingObject, at: Stamp): Promise<Replacement[]> {
    const log = this.#needed();
    try {
      const found = await prepareObject(log, log.folder, object, at);
      if (found !== undefined) return found;
    } catch (error) {
      if (error instanceof MissingFrames)
        throw new UnrestorableError(
          "The log does not have this moment: it has a gap then. Choose another moment",
        );
      if (error instanceof BackupError)
        throw new UnrestorableError(`${error.message} The present state stays.`, { cause: error });
      throw error;
    }
    const earliest = earliestOf(log, object.namespace, object.id);
    throw new UnrestorableError(
      earliest === undefined
        ? "The log has no state of this database or object"
        : `Expected a moment from ${new Date(msOf(earliest)).toISOString()} on, which is the earliest that the log has`,
    );
  }

  /** SQLite removes the log of a database when the last connection is closed. */
  #isClosed({ namespace, id }: ActingObject): boolean {
    return !readdirIn(join(this.#folder, namespace)).some(
      (name) => name.startsWith(id) && name.endsWith("-wal"),
    );
  }
}

const readdirIn = (folder: string): string[] => (existsSync(folder) ? readdirSync(folder) : []);

const dayMs = 24 * 60 * 60 * 1000;
