import type { ObjectRecovery } from "../../workers/objects/recovery/recovery.ts";
import { reached, type AtOwner } from "../../workers/objects/nodes/at-owner.ts";
import type { ObjectFilesHere } from "../../workers/objects/object-work.ts";
import { UnrestorableError } from "../../workers/objects/recovery/recovery.ts";
import type { DatabaseCalls } from "./calls.ts";
import { objectOf, type D1Database } from "./database.ts";
import { d1Errors } from "./errors.ts";

interface Restore {
  namespace: string;
  id: string;
  /** A bookmark. */
  from: string;
}

/** Bookmarks and restores of databases, with the errors of the API. */
export class TimeTravel {
  readonly #recovery: ObjectRecovery;
  readonly #calls: DatabaseCalls;
  readonly #restore: (restore: Restore) => Promise<{ before: string; after: string }>;

  /** `atOwner`: the node that has the database restores it. `files` brings its files there. */
  constructor(
    recovery: ObjectRecovery,
    calls: DatabaseCalls,
    { atOwner, files }: { atOwner: AtOwner; files: Pick<ObjectFilesHere, "restore" | "shipped"> | undefined },
  ) {
    this.#recovery = recovery;
    this.#calls = calls;
    this.#restore = atOwner.work("restore of a database", async ({ namespace, id, from }: Restore) => {
      const object = { namespace, id };
      try {
        const restore = async (): Promise<{ before: string; after: string }> =>
          recovery.restore(object, await recovery.momentOf(object, from));
        if (files === undefined) return await restore();
        await files.restore(object);
        return await files.shipped(namespace, restore);
      } catch (error) {
        throw shown(error);
      }
    });
  }

  /** The bookmark of a time in ISO 8601, or of the current state. */
  async bookmark(database: D1Database, timestamp: string | undefined): Promise<string> {
    if (timestamp !== undefined) return this.#ofTime(database, timestamp);
    return (await this.#calls.ask(database, "/facts", {}, { isRead: true })).bookmark;
  }

  async restore(
    database: D1Database,
    { bookmark, timestamp }: { bookmark?: string | undefined; timestamp?: string | undefined },
  ): Promise<{ bookmark: string; previous_bookmark: string; message: string }> {
    if ((bookmark === undefined) === (timestamp === undefined)) throw d1Errors.moment();
    this.#needed();
    const from = bookmark ?? this.#ofTime(database, timestamp!);
    const restored = this.#restore({ ...objectOf(database), from });
    const { before, after } = await reached(restored, d1Errors.unreachable);
    return {
      bookmark: after,
      previous_bookmark: before,
      message: `The database has the state of the bookmark ${from}. To undo this, restore ${before}.`,
    };
  }

  #ofTime(database: D1Database, timestamp: string): string {
    const recovery = this.#needed();
    const ms = Date.parse(timestamp);
    if (Number.isNaN(ms)) throw d1Errors.timestamp(timestamp);
    try {
      return recovery.bookmarkOfTime(objectOf(database), ms);
    } catch (error) {
      throw shown(error);
    }
  }

  #needed(): ObjectRecovery {
    if (this.#recovery.answers === undefined) throw d1Errors.timeTravel();
    return this.#recovery;
  }
}

const shown = (error: unknown): unknown =>
  error instanceof UnrestorableError ? d1Errors.unrestorable(error.message) : error;
