import { join } from "node:path";
import type { ObjectFolders } from "../../sandbox/objects/folders.ts";
import type { ActingObject } from "../../sandbox/objects/standing.ts";
import { objectErrors } from "../scripts/versions/object-errors.ts";
import type { Alarms } from "./alarms/alarms.ts";
import type { ObjectNamespaces } from "./namespaces.ts";
import { reached, type AtOwner } from "./nodes/at-owner.ts";
import type { ObjectRuns } from "./object-runs.ts";
import type { QueryJob, QueryResult } from "./query/job.ts";
import { hasObject, listObjects, objectFile } from "./query/listing.ts";
import type { ObjectQueries } from "./query/queries.ts";
import { UnrestorableError, type ObjectRecovery } from "./recovery/recovery.ts";

/** The files of objects, where they come from the log of other nodes. */
export interface ObjectFilesHere {
  restore(object: ActingObject): Promise<void>;
  /** Brings the files of the first objects after a cursor. Returns the id of the last one, if there are more. */
  restorePage(namespace: string, page: Page): Promise<string | undefined>;
  /**
   * Does work on a namespace. Resolves when the log has everything that it wrote or deleted; rejects as a call whose
   * connection is lost if the namespace was given to another node meanwhile, which may not have that.
   */
  shipped<T>(namespace: string, work: () => Promise<T>): Promise<T>;
}

interface Page {
  limit: number;
  cursor?: string | undefined;
}

interface Parts {
  namespaces: ObjectNamespaces;
  folders: ObjectFolders;
  queries: ObjectQueries;
  runs: ObjectRuns;
  alarms: Alarms;
  recovery: ObjectRecovery;
  /** Undefined if all files are here. */
  files: ObjectFilesHere | undefined;
}

type Question = Pick<QueryJob, "sql" | "params">;
interface Moment {
  bookmark?: string | undefined;
  ms?: number | undefined;
}

/** Objects whose files one page of a list may bring from the log. The page is shorter if there are more. */
const restoredMax = 200;

/** The work of operations on objects, at the node that has the objects. */
export type ObjectWork = ReturnType<typeof objectWork>;

/** See ObjectWork. Rejects with errors for callers of the API. */
export function objectWork(owners: AtOwner, parts: Parts) {
  const atOwner = forCallers(owners);
  const { namespaces, folders, queries, runs, alarms, recovery, files } = parts;
  const shipped = async <T>(namespace: string, write: () => Promise<T>): Promise<T> =>
    files === undefined ? write() : files.shipped(namespace, write);
  const found = async (object: ActingObject): Promise<void> => {
    await files?.restore(object);
    if (!(await hasObject(folders.path, object.namespace, object.id)))
      throw objectErrors.objectNotFound(object.id);
  };
  return {
    list: atOwner.work("list of objects", async ({ namespace, ...page }: { namespace: string } & Page) => {
      // Objects that were deleted or have stored nothing are in the log too, so a page of it may bring none.
      const limit = Math.min(page.limit, restoredMax);
      for (let { cursor } = page; ;) {
        cursor = await files?.restorePage(namespace, { limit, cursor });
        const listed = await listObjects(folders.path, namespace, page);
        const last = cursor;
        if (last === undefined) return listed;
        const objects = listed.objects.filter(({ id }) => id <= last);
        if (objects.length > 0) return { objects, next: objects.at(-1)!.id };
      }
    }),
    query: atOwner.work(
      "query of an object",
      async (asked: ActingObject & { accountId: string; question: Question }): Promise<QueryResult> => {
        const { namespace, id, accountId, question } = asked;
        await found({ namespace, id });
        return queries.query(accountId, join(folders.path, namespace, objectFile(id)), question);
      },
    ),
    remove: atOwner.work("removal of an object", async ({ namespace, id }: ActingObject) => {
      await found({ namespace, id });
      const known = namespaces.find(namespace);
      if (known === undefined) throw objectErrors.namespaceNotFound(namespace);
      await shipped(namespace, async () => {
        await runs.remove(known, id);
        alarms.forget(namespace, id);
        await recovery.forget({ namespace, id });
      });
      return { id };
    }),
    /** Rejects with objectErrors.unrestorable. */
    restore: atOwner.work(
      "restore of an object",
      async ({ namespace, id, bookmark, ms }: ActingObject & Moment) => {
        const object = { namespace, id };
        try {
          await files?.restore(object);
          const from = bookmark ?? recovery.bookmarkOfTime(object, ms!);
          const at = await recovery.momentOf(object, from);
          return { ...(await shipped(namespace, async () => recovery.restore(object, at))), from };
        } catch (error) {
          if (error instanceof UnrestorableError) throw objectErrors.unrestorable(error.message);
          throw error;
        }
      },
    ),
  };
}

const forCallers = (owners: AtOwner): Pick<AtOwner, "work"> => ({
  work(name, work) {
    const ask = owners.work(name, work);
    return async (details) => reached(ask(details), objectErrors.unreachable);
  },
});
