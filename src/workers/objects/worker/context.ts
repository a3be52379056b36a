import type { ObjectAddress } from "../../../sandbox/protocol.ts";
import { watchWork } from "../../tail/worker/console.ts";
import { exportsOf, facetsOf, refuseAlarms, type FacetOptions } from "./facets.ts";
import { ownId } from "./ids.ts";

const { defineProperty } = Object;
const NativeError = Error;

/** Replaces the parts of the native `ctx` that belong to the platform. `this.ctx` is the same object. */
export function prepareContext(
  ctx: DurableObjectState<unknown>,
  object: ObjectAddress,
  facet: FacetOptions | undefined,
): void {
  const { id, namespace, name, jurisdiction, isSqlite } = object;
  if (facet?.hasTextId !== true) define(ctx, "id", ownId(id, namespace, name, jurisdiction));
  define(ctx, "props", facet?.props ?? {});
  const waitUntil = ctx.waitUntil.bind(ctx);
  define(ctx, "waitUntil", (promise: Promise<unknown>) => {
    watchWork(promise);
    waitUntil(promise);
  });
  // The native ones would show the wrapper's exports.
  const native = ctx as unknown as { exports?: Record<string, unknown>; facets: never };
  define(ctx, "exports", exportsOf(native.exports));
  define(ctx, "facets", facetsOf(native.facets, object));
  prepareStorage(ctx.storage, isSqlite);
  if (facet !== undefined) refuseAlarms(ctx.storage, define);
}

function prepareStorage(storage: DurableObjectStorage, isSqlite: boolean): void {
  for (const name of ["setAlarm", "deleteAlarm", "getAlarm"])
    define(storage, name, async () => {
      throw new NativeError(
        `${name}() is not available here: alarms of Durable Objects are not supported yet.`,
      );
    });
  for (const name of ["getCurrentBookmark", "getBookmarkForTime", "onNextSessionRestoreBookmark"])
    define(storage, name, async () => {
      throw new NativeError(
        "This Durable Object's storage back-end does not implement point-in-time recovery.",
      );
    });
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
