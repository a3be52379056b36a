import type { ObjectAddress } from "../../../sandbox/protocol.ts";
import { watchWork } from "../../tail/worker/console.ts";
import { exportsOf, facetsOf, refuseAlarms, type FacetOptions } from "./facets.ts";
import { Alarm, hideAlarm } from "./alarms.ts";
import { addBookmarks, refuseBookmarks } from "./bookmarks.ts";
import { ownId } from "./ids.ts";

const { apply } = Reflect;
const { defineProperty } = Object;
const NativeError = Error;

/** Whether `deleteAll` deletes the alarm, too: the default from the compatibility date 2026-02-24. */
const { delete_all_deletes_alarm: deletesAlarm = false } =
  (globalThis as { Cloudflare?: { compatibilityFlags?: { delete_all_deletes_alarm?: boolean } } }).Cloudflare
    ?.compatibilityFlags ?? {};

/** Replaces the parts of the native `ctx` that belong to the platform. `this.ctx` is the same object. */
export function prepareContext(
  ctx: DurableObjectState<unknown>,
  object: ObjectAddress,
  facet: FacetOptions | undefined,
  hasAlarmHandler: boolean,
): Alarm | undefined {
  const { id, namespace, name, jurisdiction, isSqlite } = object;
  if (facet?.hasTextId !== true) define(ctx, "id", ownId(id, namespace, name, jurisdiction));
  define(ctx, "props", facet?.props ?? {});
  const { waitUntil } = ctx;
  define(ctx, "waitUntil", (promise: Promise<unknown>) => {
    watchWork(promise);
    apply(waitUntil, ctx, [promise]);
  });
  // The native ones would show the wrapper's exports.
  const native = ctx as unknown as { exports?: Record<string, unknown>; facets: never };
  define(ctx, "exports", exportsOf(native.exports));
  define(ctx, "facets", facetsOf(native.facets, object));
  const { storage } = ctx;
  const alarm =
    facet === undefined ? new Alarm(ctx, storage.kv as never, object, hasAlarmHandler) : undefined;
  if (alarm === undefined) refuseAlarms(storage, define);
  else prepareAlarm(storage, alarm);
  if (facet === undefined && isSqlite) addBookmarks(storage, object);
  else refuseBookmarks(storage);
  prepareStorage(storage, isSqlite);
  return alarm;
}

function prepareAlarm(storage: DurableObjectStorage, alarm: Alarm): void {
  const { transaction, deleteAll, kv } = storage as unknown as Record<string, (...args: unknown[]) => never>;
  alarm.addTo(storage as never);
  hideAlarm(kv as never);
  define(storage, "transaction", async (closure: unknown) =>
    alarm.within(async (wrapped) => apply(transaction!, storage, [wrapped]), closure),
  );
  define(storage, "deleteAll", async (options?: unknown) =>
    alarm.deleteAll(async () => apply(deleteAll!, storage, [options]), !deletesAlarm),
  );
}

function prepareStorage(storage: DurableObjectStorage, isSqlite: boolean): void {
  if (isSqlite) return;
  refuse(storage, "sql", `SQL is not enabled for this Durable Object class. To enable it, ${remedy}`);
  refuse(
    storage,
    "kv",
    `The storage.kv (synchronous KV) API is only available for SQLite-backed Durable Objects, but this object's namespace is not declared to use SQLite. You can use the older, asyncronous interface via methods of \`storage\` itself (e.g. \`storage.get()\`). Alternatively, to enable SQLite, ${remedy}`,
  );
}

/* These are the public texts. */
const remedy =
  "change `new_classes` to `new_sqlite_classes` within the 'migrations' field in your wrangler.jsonc or wrangler.toml file. Note that this change cannot be made after the class is already deployed to production.";

function define(target: object, name: string, value: unknown): void {
  defineProperty(target, name, { value, writable: true, configurable: true });
}

function refuse(target: object, name: string, message: string): void {
  defineProperty(target, name, {
    get() {
      throw new NativeError(message);
    },
    configurable: true,
  });
}
