import type { ObjectChange } from "../../scripts/versions/object-classes.ts";
import { objectErrors } from "../../scripts/versions/object-errors.ts";
import type { ObjectNamespace } from "../namespace.ts";
import { groupOf } from "../namespaces.ts";
import * as store from "../store.ts";
import { clock } from "../../../platform/timers/clock.ts";

/** The namespaces of a script while migrations are applied. */
export class ObjectClasses {
  readonly #change: ObjectChange;
  readonly #newId: (group: string) => string;
  readonly #byName = new Map<string, ObjectNamespace>();
  readonly #deleted = new Set<string>();
  readonly #changed = new Map<string, ObjectNamespace>();
  /** Names of classes that a migration step has created, renamed or received; no other step may use them. */
  readonly #targets = new Set<string>();

  constructor(change: ObjectChange, own: readonly ObjectNamespace[], newId: (group: string) => string) {
    this.#change = change;
    this.#newId = newId;
    for (const namespace of own) this.#byName.set(namespace.className, namespace);
  }

  get names(): string[] {
    return [...this.#byName.keys()].sort();
  }

  byName(name: string): ObjectNamespace | undefined {
    return this.#byName.get(name);
  }

  byId(id: string): ObjectNamespace | undefined {
    return [...this.#byName.values()].find((namespace) => namespace.id === id);
  }

  isDeleted(id: string): boolean {
    return this.#deleted.has(id);
  }

  create(className: string, isSqlite: boolean): void {
    this.#target(className);
    if (this.#byName.has(className)) throw objectErrors.exists("new", className);
    const { owner, script } = this.#change;
    this.#put({
      id: this.#newId(groupOf(script)),
      accountId: owner.accountId,
      scriptId: script.id,
      className,
      isSqlite,
      createdOn: clock.now(),
    });
  }

  delete(className: string): void {
    const { id } = this.#take("delete", className);
    this.#changed.delete(id);
    this.#deleted.add(id);
  }

  rename(from: string, to: string): void {
    const namespace = this.#take("rename", from);
    this.#target(to);
    if (this.#byName.has(to)) throw objectErrors.exists("rename", to);
    this.#put({ ...namespace, className: to });
  }

  transfer(moved: ObjectNamespace, to: string): void {
    this.#target(to);
    if (this.#byName.has(to)) throw objectErrors.exists("transfer", to);
    this.#put({ ...moved, scriptId: this.#change.script.id, className: to });
  }

  /** Gives a class to another script of the account. */
  transferTo(className: string, scriptId: string): void {
    const namespace = this.#take("transfer", className);
    this.#changed.set(namespace.id, { ...namespace, scriptId });
  }

  /** Every class with objects must be exported by the new version. */
  checkExports(): void {
    const { exportNames } = this.#change;
    if (exportNames === undefined) return;
    for (const name of this.#byName.keys()) {
      if (exportNames.has(name)) continue;
      throw this.#targets.has(name) ? objectErrors.newNotExported(name) : objectErrors.notExported(name);
    }
  }

  async write(): Promise<void> {
    const { trx, changed } = this.#change;
    for (const id of this.#deleted) await store.remove(trx, id);
    for (const namespace of this.#changed.values()) await store.put(trx, namespace);
    for (const id of [...this.#deleted, ...this.#changed.keys()])
      changed({ kind: "object_namespace", id, parentId: this.#change.owner.accountId });
  }

  #take(kind: "delete" | "rename" | "transfer", className: string): ObjectNamespace {
    const namespace = this.#byName.get(className);
    if (namespace === undefined) throw objectErrors.missing(kind, className);
    this.#byName.delete(className);
    return namespace;
  }

  #target(className: string): void {
    if (this.#targets.has(className)) throw objectErrors.twice(className);
    this.#targets.add(className);
  }

  #put(namespace: ObjectNamespace): void {
    this.#byName.set(namespace.className, namespace);
    this.#changed.set(namespace.id, namespace);
  }
}
