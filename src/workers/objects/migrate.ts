import type { Storage } from "../../platform/storage/storage.ts";
import type { StoredBinding } from "../scripts/script.ts";
import type { Scripts } from "../scripts/scripts.ts";
import type { MigrationStep, ObjectChange, ObjectPlan } from "../scripts/versions/object-classes.ts";
import { objectErrors } from "../scripts/versions/object-errors.ts";
import { groupOf } from "./namespaces.ts";
import type { ObjectNamespace } from "./namespace.ts";
import * as store from "./store.ts";

type ObjectBinding = Extract<StoredBinding, { type: "durable_object_namespace" }>;

/** Applies migrations to the namespaces of scripts, and resolves bindings to them. */
export class ObjectMigrations {
  readonly #storage: Storage;
  readonly #scripts: Scripts;
  /** Chooses the id of a new namespace of a group. */
  readonly #newId: (group: string) => string;

  constructor(storage: Storage, scripts: Scripts, newId: (group: string) => string) {
    this.#storage = storage;
    this.#scripts = scripts;
    this.#newId = newId;
  }

  async plan(change: ObjectChange): Promise<ObjectPlan> {
    const { trx, script, migrations, bindings } = change;
    const own = await store.ofScript(trx, script.id);
    const bindsObjects = bindings.some(({ type }) => type === "durable_object_namespace");
    if (migrations === undefined && own.length === 0 && !bindsObjects)
      return { bindings, classes: [], migrationTag: script.migrationTag, write: async () => {} };
    if (this.#storage.engine !== "sqlite") throw objectErrors.unavailable();
    const classes = new Classes(change, own, this.#newId);
    if (migrations !== undefined) {
      if (migrations.oldTag !== script.migrationTag) throw objectErrors.tag(script.migrationTag);
      for (const step of migrations.steps) await this.#apply(step, classes, change);
    }
    classes.checkExports();
    return {
      bindings: await this.#resolved(change, classes),
      classes: classes.names,
      migrationTag: migrations?.newTag ?? script.migrationTag,
      write: async () => classes.write(),
    };
  }

  async #apply(step: MigrationStep, classes: Classes, { trx, owner }: ObjectChange): Promise<void> {
    for (const name of step.deleted_classes ?? []) classes.delete(name);
    for (const { from, to } of step.renamed_classes ?? []) classes.rename(from, to);
    for (const { from, from_script, to } of step.transferred_classes ?? []) {
      const source = this.#scripts.find(owner, from_script);
      const moved =
        source && (await store.ofScript(trx, source.id)).find(({ className }) => className === from);
      if (moved === undefined) throw objectErrors.missing("transfer", from);
      classes.transfer(moved, to);
    }
    for (const name of step.new_classes ?? []) classes.create(name, false);
    for (const name of step.new_sqlite_classes ?? []) classes.create(name, true);
  }

  /** The bindings of a version, those to namespaces with their ids. */
  async #resolved(change: ObjectChange, classes: Classes): Promise<StoredBinding[]> {
    const resolved: StoredBinding[] = [];
    for (const binding of change.bindings)
      resolved.push(
        binding.type === "durable_object_namespace" ? await this.#resolve(binding, change, classes) : binding,
      );
    return resolved;
  }

  async #resolve(
    binding: ObjectBinding,
    { trx, owner, script }: ObjectChange,
    classes: Classes,
  ): Promise<ObjectBinding> {
    const { namespace_id: id, class_name: name = "", script_name: scriptName = script.name } = binding;
    if (id !== undefined) {
      const found = classes.byId(id) ?? (await store.findById(trx, id));
      const isOwn = found?.scriptId === script.id;
      const isAllowed = found?.accountId === owner.accountId && (isOwn || owner.namespace === undefined);
      if (!isAllowed || classes.isDeleted(id)) throw objectErrors.foreignBinding(binding.name);
      const source = found.scriptId === null || isOwn ? undefined : this.#scripts.findById(found.scriptId);
      // Only the account's own scripts share their namespaces with each other.
      if (!isOwn && source?.namespaceId !== null) throw objectErrors.foreignBinding(binding.name);
      const { script_name: _, ...rest } = binding;
      return { ...rest, class_name: found.className, ...(source && { script_name: source.name }) };
    }
    if (scriptName === script.name) {
      const found = classes.byName(name);
      if (found === undefined) throw objectErrors.binding(name);
      return { ...binding, namespace_id: found.id };
    }
    const other = owner.namespace === undefined ? this.#scripts.find(owner, scriptName) : undefined;
    const found = other && (await store.ofScript(trx, other.id)).find(({ className }) => className === name);
    if (found === undefined) throw objectErrors.binding(name);
    return { ...binding, namespace_id: found.id };
  }
}

/** The namespaces of a script while migrations are applied. */
class Classes {
  readonly #change: ObjectChange;
  readonly #newId: (group: string) => string;
  readonly #byName = new Map<string, ObjectNamespace>();
  readonly #deleted = new Set<string>();
  readonly #changed = new Map<string, ObjectNamespace>();
  /** Classes that a step has made, which no other one may make. */
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
      createdOn: Date.now(),
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

  #take(kind: "delete" | "rename", className: string): ObjectNamespace {
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
