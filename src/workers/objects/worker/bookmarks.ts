import type { BookmarkOrder, ObjectAddress } from "../../../sandbox/protocol.ts";
import { askBookmark, forRun } from "../../../sandbox/worker/run.ts";
import { toMs } from "./alarms.ts";

// Saved before the script's code runs, because a script may replace them.
const { defineProperty } = Object;
const [NativeError, toText] = [Error, String];

const names = ["getCurrentBookmark", "getBookmarkForTime", "onNextSessionRestoreBookmark"] as const;

/** Replaces the methods of bookmarks of `ctx.storage`: the gateway keeps the history of objects. */
export function addBookmarks(storage: object, { standing }: ObjectAddress): void {
  let turns = 0;
  // workerd sends the question after everything that the object has written before is on disk.
  const ask = async (order: BookmarkOrder): Promise<string> =>
    forRun(`${standing}.b${++turns}`, async () => askBookmark(order));
  define(storage, names[0], async () => ask({ of: "now" }));
  define(storage, names[1], async (time: unknown) => ask({ of: "time", ms: toMs(names[1], time) }));
  define(storage, names[2], async (bookmark: unknown) => ask({ of: "restore", bookmark: toText(bookmark) }));
}

/** For facets and for classes without SQL, with the public text. */
export function refuseBookmarks(storage: object): void {
  for (let i = 0; i < names.length; i++)
    define(storage, names[i]!, async () => {
      throw new NativeError(
        "This Durable Object's storage back-end does not implement point-in-time recovery.",
      );
    });
}

function define(target: object, name: string, value: unknown): void {
  defineProperty(target, name, { value, writable: true, configurable: true });
}
