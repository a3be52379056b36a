import type { Stamp } from "../../../platform/object-log/stamps.ts";
import type { Storage, Write } from "../../../platform/storage/storage.ts";
import { objectKeyOf, type ActingObject } from "../../../sandbox/objects/standing.ts";

/** Restores of one object that bookmarks can still undo. */
const undoneMax = 100;

/**
 * Restores that objects have asked for. Each takes place before the object's next instance starts. They are stored,
 * because the program may end earlier. They are kept afterwards, because the object has a bookmark to undo each restore.
 */
export class AwaitedRestores {
  readonly #storage: Storage;
  /** The moments to restore, by object. */
  readonly #awaited = new Map<string, { namespace: string; target: Stamp }>();

  constructor(storage: Storage) {
    this.#storage = storage;
  }

  /** Reads them all, or those of namespaces again, which another node may have had. */
  async load(isIn: (namespace: string) => boolean = () => true): Promise<void> {
    for (const [key, { namespace }] of [...this.#awaited]) if (isIn(namespace)) this.#awaited.delete(key);
    const rows = await this.#storage.read
      .selectFrom("object_restores")
      .selectAll()
      .where("is_done", "=", 0)
      .execute();
    for (const { namespace_id: namespace, object_id: id, target } of rows)
      if (isIn(namespace)) this.#awaited.set(objectKeyOf({ namespace, id }), { namespace, target });
  }

  /** The moment to which an object is restored before it starts; undefined if it keeps its data. */
  targetOf(object: ActingObject): Stamp | undefined {
    return this.#awaited.get(objectKeyOf(object))?.target;
  }

  /** Replaces the restore that an object awaits. `undo` is the moment of this call. */
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
    this.#awaited.set(objectKeyOf(object), { namespace: object.namespace, target });
  }

  /** Records the start of a restore. `before` is the last moment of the replaced data; an earlier attempt's is kept. */
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
    this.#awaited.delete(objectKeyOf(object));
  }

  /** Drops the awaited restore: the object keeps its data. */
  async cancel(object: ActingObject): Promise<void> {
    if (!this.#awaited.has(objectKeyOf(object))) return;
    await this.#storage.write((trx) => removeAwaited(trx, object));
    this.#awaited.delete(objectKeyOf(object));
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
    this.#awaited.delete(objectKeyOf(object));
  }

  /** The last moment before the restore that was requested at `undo`; undefined if it has not taken place. */
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
