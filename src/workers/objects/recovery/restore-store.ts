import type { Stamp } from "../../../platform/object-log/stamps.ts";
import type { Storage, Write } from "../../../platform/storage/storage.ts";
import { keyOf, type ActingObject } from "../../../sandbox/objects/standing.ts";

/** Restores of one object that bookmarks can still undo. */
const undoneMax = 100;

/**
 * Restores that objects have asked for, which take place before their next instances start. Stored, because the program
 * may end before, and kept afterwards, because the bookmark that undoes one was given out before it took place.
 */
export class AwaitedRestores {
  readonly #storage: Storage;
  /** The moments to restore, by object. */
  readonly #awaited = new Map<string, Stamp>();

  constructor(storage: Storage) {
    this.#storage = storage;
  }

  async load(): Promise<void> {
    this.#awaited.clear();
    const rows = await this.#storage.read
      .selectFrom("object_restores")
      .selectAll()
      .where("is_done", "=", 0)
      .execute();
    for (const row of rows)
      this.#awaited.set(keyOf({ namespace: row.namespace_id, id: row.object_id }), row.target);
  }

  /** The moment that an object gets before it starts; undefined if it goes on with its data. */
  targetOf(object: ActingObject): Stamp | undefined {
    return this.#awaited.get(keyOf(object));
  }

  /** Replaces the restore that an object awaits. `undo`: the moment of this call. */
  async put(object: ActingObject, { target, undo }: { target: Stamp; undo: Stamp }): Promise<void> {
    await this.#storage.write(async (trx) => {
      await removeAwaited(trx, object);
      const kept = await rowsOf(trx, object)
        .select("undo")
        .orderBy("undo", "desc")
        .limit(undoneMax)
        .execute();
      const oldest = kept.at(-1)?.undo;
      if (kept.length === undoneMax && oldest !== undefined)
        await trx
          .deleteFrom("object_restores")
          .where("namespace_id", "=", object.namespace)
          .where("object_id", "=", object.id)
          .where("undo", "<=", oldest)
          .execute();
      await trx
        .insertInto("object_restores")
        .values({
          namespace_id: object.namespace,
          object_id: object.id,
          undo,
          target,
          before: null,
          is_done: 0,
        })
        .execute();
    });
    this.#awaited.set(keyOf(object), target);
  }

  /** A restore begins: `before` is the last moment of the data that it replaces, unless an earlier attempt had begun. */
  async begin({ namespace, id }: ActingObject, before: Stamp): Promise<void> {
    await this.#storage.write((trx) =>
      trx
        .updateTable("object_restores")
        .set({ before })
        .where("namespace_id", "=", namespace)
        .where("object_id", "=", id)
        .where("is_done", "=", 0)
        .where("before", "is", null)
        .execute(),
    );
  }

  async end(object: ActingObject): Promise<void> {
    await this.#storage.write((trx) =>
      trx
        .updateTable("object_restores")
        .set({ is_done: 1 })
        .where("namespace_id", "=", object.namespace)
        .where("object_id", "=", object.id)
        .execute(),
    );
    this.#awaited.delete(keyOf(object));
  }

  /** The object goes on with its data. */
  async cancel(object: ActingObject): Promise<void> {
    if (!this.#awaited.has(keyOf(object))) return;
    await this.#storage.write((trx) => removeAwaited(trx, object));
    this.#awaited.delete(keyOf(object));
  }

  /** Forgets all restores of an object. */
  async forget(object: ActingObject): Promise<void> {
    await this.#storage.write((trx) =>
      trx
        .deleteFrom("object_restores")
        .where("namespace_id", "=", object.namespace)
        .where("object_id", "=", object.id)
        .execute(),
    );
    this.#awaited.delete(keyOf(object));
  }

  /** The last moment before the restore whose bookmark was given out at `undo`; undefined if it has not taken place. */
  async beforeOf({ namespace, id }: ActingObject, undo: Stamp): Promise<Stamp | undefined> {
    const row = await this.#storage.read
      .selectFrom("object_restores")
      .select("before")
      .where("namespace_id", "=", namespace)
      .where("object_id", "=", id)
      .where("undo", "=", undo)
      .where("is_done", "=", 1)
      .executeTakeFirst();
    return row?.before ?? undefined;
  }
}

const rowsOf = (trx: Write, { namespace, id }: ActingObject) =>
  trx.selectFrom("object_restores").where("namespace_id", "=", namespace).where("object_id", "=", id);

async function removeAwaited(trx: Write, { namespace, id }: ActingObject): Promise<void> {
  await trx
    .deleteFrom("object_restores")
    .where("namespace_id", "=", namespace)
    .where("object_id", "=", id)
    .where("is_done", "=", 0)
    .execute();
}
