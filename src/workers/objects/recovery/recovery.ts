import { BackupError } from "../../../platform/storage/archive/errors.ts";
import {
  earliestOf,
  prepareObject,
  replaceFiles,
  type Replacement,
} from "../../../platform/object-log/history.ts";
import type { OpenObjectLog } from "../../../platform/object-log/open-object-log.ts";
import { MissingFrames } from "../../../platform/object-log/states.ts";
import {
  bookmarkAt,
  msOf,
  readBookmark,
  stampAt,
  undoBookmarkAt,
  type Stamp,
} from "../../../platform/object-log/stamps.ts";
import type { Alarms } from "../alarms/alarms.ts";
import type { ObjectCells } from "../../../sandbox/objects/object-cells.ts";
import { Pauses } from "../../../sandbox/objects/pauses.ts";
import { objectKeyOf, type ActingObject } from "../../../sandbox/objects/standing.ts";
import type { BookmarkOrder } from "../../../sandbox/protocol.ts";
import { Refusal } from "../../../sandbox/errors.ts";
import { clock } from "../../../platform/timers/clock.ts";
import type { AwaitedRestores } from "./restore-store.ts";

/** Why an object cannot be brought back to a moment. The message is for callers. */
export class UnrestorableError extends Refusal {}

/** The public text. */
const withoutLog = "This Durable Object's storage back-end does not implement point-in-time recovery.";

/** Restores earlier states of objects from the log of objects. A bookmark names a moment. */
export class ObjectRecovery {
  readonly #log: OpenObjectLog | undefined;
  readonly #cells: ObjectCells;
  readonly #days: number;
  readonly #alarms: Alarms;
  readonly #awaited: AwaitedRestores;
  /** Restores of one object take place one after the other. */
  readonly #restoring = new Pauses();

  /** Creates bookmarks for the answers of calls; undefined without a log. */
  readonly answers: { bookmark: (object: ActingObject) => string } | undefined;

  constructor(
    log: OpenObjectLog | undefined,
    cells: ObjectCells,
    { days, alarms, awaited }: { days: number; alarms: Alarms; awaited: AwaitedRestores },
  ) {
    this.answers = log && { bookmark: (object) => this.bookmark(object) };
    this.#log = log;
    this.#alarms = alarms;
    this.#cells = cells;
    this.#days = days;
    this.#awaited = awaited;
  }

  /** Reads the restores that objects await: all, or those of namespaces again. */
  async load(isIn?: (namespace: string) => boolean): Promise<void> {
    if (this.#log !== undefined) await this.#awaited.load(isIn);
  }

  /** Whether an object gets an earlier state before its next instance starts. */
  isAwaited(object: ActingObject): boolean {
    return this.#awaited.targetOf(object) !== undefined;
  }

  /** Answers an object's own request for a bookmark or a restore. Rejects with an UnrestorableError. */
  async answer(object: ActingObject, order: BookmarkOrder): Promise<string> {
    if (this.#log === undefined) throw new UnrestorableError(withoutLog);
    if (order.of === "now") return this.bookmark(object);
    if (order.of === "time") return this.bookmarkOfTime(object, order.ms);
    const target = await this.momentOf(object, order.bookmark);
    await this.#log.ready();
    await this.#log.log.flush(object.namespace, object.id);
    this.#checkKept(object, target);
    const undo = this.#log.log.noteAnswer(object.namespace, object.id);
    await this.#awaited.put(object, { target, undo });
    return undoBookmarkAt(undo, ownerOf(object));
  }

  /** Throws UnrestorableError if the setting object-log is not set. */
  #needed(): OpenObjectLog {
    if (this.#log === undefined)
      throw new UnrestorableError(
        "This installation keeps no earlier states, because its setting object-log is not set",
      );
    return this.#log;
  }

  /** The bookmark of the present state: everything that was committed before the call. */
  bookmark(object: ActingObject): string {
    return bookmarkAt(this.#needed().log.noteAnswer(object.namespace, object.id), ownerOf(object));
  }

  /** The bookmark of a moment, in milliseconds. Throws UnrestorableError if the log does not go back to it. */
  bookmarkOfTime(object: ActingObject, ms: number): string {
    this.#needed();
    const now = clock.now();
    if (ms > now) throw new UnrestorableError("Expected a time that is not in the future");
    if (ms < now - this.#days * dayMs)
      throw new UnrestorableError(`Expected a time within the last ${this.#days} days`);
    return bookmarkAt(stampAt(ms), ownerOf(object));
  }

  /** The moment of a bookmark. Throws UnrestorableError for one of another object or in the future. */
  async momentOf(object: ActingObject, bookmark: string): Promise<Stamp> {
    // Earlier releases named the namespace in bookmarks.
    const found = readBookmark(bookmark, [ownerOf(object), object.namespace]);
    if (found === undefined) throw new UnrestorableError("Expected a bookmark of this database or object");
    if (msOf(found.stamp) > clock.now())
      throw new UnrestorableError("Expected a bookmark that is not in the future");
    if (!found.isUndo) return found.stamp;
    const before = await this.#awaited.beforeOf(object, found.stamp);
    if (before === undefined)
      throw new UnrestorableError("The restore that this bookmark undoes has not taken place");
    return before;
  }

  /**
   * Replaces the data of an object by its state at a moment. Requests in progress fail. Returns the bookmarks of the
   * states before and after. If it throws an UnrestorableError, nothing has changed.
   */
  async restore(object: ActingObject, at: Stamp): Promise<{ before: string; after: string }> {
    const { log, ready } = this.#needed();
    const { namespace, id } = object;
    await ready();
    await log.flush(namespace, id);
    return this.#cells.pause(object, async () =>
      this.#restoring.during(objectKeyOf(object), async () => {
        await log.flush(namespace, id);
        const before = this.bookmark(object);
        await this.#replace(object, at, "all");
        await this.#awaited.cancel(object);
        return { before, after: this.bookmark(object) };
      }),
    );
  }

  /** Call when an object was deleted with its data. */
  async forget(object: ActingObject): Promise<void> {
    await this.#awaited.forget(object);
  }

  /**
   * Gives an object the state that it has asked for, while its host waits and its facets are closed. If the log no longer
   * has the state, the object keeps its data. Rejects with an UnrestorableError then.
   */
  async restoreBeforeStart(object: ActingObject): Promise<void> {
    const { log, ready } = this.#needed();
    await this.#restoring.during(objectKeyOf(object), async () => {
      const target = this.#awaited.targetOf(object);
      if (target === undefined) return;
      await ready();
      await log.flush(object.namespace, object.id);
      await this.#awaited.begin(object, log.noteAnswer(object.namespace, object.id));
      try {
        await this.#replace(object, target, "facets");
      } catch (error) {
        if (error instanceof UnrestorableError) await this.#awaited.cancel(object);
        throw error;
      }
      await this.#awaited.end(object);
    });
  }

  async #replace(object: ActingObject, at: Stamp, part: "all" | "facets"): Promise<void> {
    const { log, folder, notes } = this.#needed();
    const replacements = await this.#prepare(object, at, part);
    await replaceFiles(folder, notes, replacements);
    for (const file of replacements) log.noteReplaced(file);
    await log.settle();
    this.#alarms.ask(object);
  }

  async #prepare(object: ActingObject, at: Stamp, part: "all" | "facets"): Promise<Replacement[]> {
    const log = this.#needed();
    try {
      const found = await prepareObject(log, log.folder, object, at, part);
      if (found !== undefined) return found;
    } catch (error) {
      if (error instanceof MissingFrames)
        throw new UnrestorableError("The log of objects has a gap at this moment. Choose another moment");
      if (error instanceof BackupError)
        throw new UnrestorableError(`${error.message} The present state stays.`, { cause: error });
      throw error;
    }
    throw tooEarly(earliestOf(log, object.namespace, object.id));
  }

  #checkKept({ namespace, id }: ActingObject, at: Stamp): void {
    const earliest = earliestOf(this.#needed(), namespace, id);
    if (earliest === undefined || at < earliest) throw tooEarly(earliest);
  }
}

const tooEarly = (earliest: Stamp | undefined): UnrestorableError =>
  new UnrestorableError(
    earliest === undefined
      ? "The log has no state of this database or object"
      : `Expected a moment from ${new Date(msOf(earliest)).toISOString()} on: the log of objects has no earlier one`,
  );

/** The last part of an object's bookmarks: 32 hexadecimal digits. */
const ownerOf = ({ id }: ActingObject): string => id.slice(0, 32);

const dayMs = 24 * 60 * 60 * 1000;
