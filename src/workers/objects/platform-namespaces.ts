import type { Change, Write } from "../../platform/storage/storage.ts";
import type { ObjectCells } from "../../sandbox/objects/object-cells.ts";
import { platformGroupOf } from "./namespaces.ts";
import * as store from "./store.ts";
import { clock } from "../../platform/timers/clock.ts";

type Changed = (change: Change) => void;

/** Namespaces of objects whose class belongs to the platform, such as the databases of D1. */
export class PlatformNamespaces {
  readonly #cells: ObjectCells;

  constructor(cells: ObjectCells) {
    this.#cells = cells;
  }

  newId(accountId: string): string {
    return this.#cells.newId(platformGroupOf(accountId));
  }

  /** Takes back an id of `newId` that was not stored. */
  giveBack(id: string): void {
    this.#cells.giveBack(id);
  }

  async put(
    trx: Write,
    changed: Changed,
    { id, accountId, className }: { id: string; accountId: string; className: string },
  ): Promise<void> {
    await store.put(trx, {
      id,
      accountId,
      scriptId: null,
      className,
      isSqlite: true,
      createdOn: clock.now(),
    });
    changed({ kind: "object_namespace", id, parentId: accountId });
  }

  /** Removes a namespace. Its data is removed after the transaction. */
  async remove(
    trx: Write,
    changed: Changed,
    { id, accountId }: { id: string; accountId: string },
  ): Promise<void> {
    await store.remove(trx, id);
    changed({ kind: "object_namespace", id, parentId: accountId });
  }
}
