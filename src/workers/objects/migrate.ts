import type { StoredBinding } from "../scripts/script.ts";
import type { Scripts } from "../scripts/scripts.ts";
import type { MigrationStep, ObjectChange, ObjectPlan } from "../scripts/versions/object-classes.ts";
import { objectErrors } from "../scripts/versions/object-errors.ts";
import { ObjectClasses } from "./classes/classes.ts";
import type { ObjectNamespace } from "./namespace.ts";
import { Reconciler } from "./classes/reconcile.ts";
import * as store from "./store.ts";

type ObjectBinding = Extract<StoredBinding, { type: "durable_object_namespace" }>;

export interface NamespaceIds {
  /** Chooses the id of a new namespace of a group. */
  newId(group: string): string;
  /** Takes back an id of `newId` that no namespace uses. */
  giveBack(id: string): void;
}

/** Applies migrations to the namespaces of scripts, and resolves bindings to them. */
export class ObjectMigrations {
  readonly #isAvailable: boolean;
  readonly #scripts: Scripts;
  readonly #ids: NamespaceIds;

  /** `isAvailable`: whether objects can run on this installation. */
  constructor(isAvailable: boolean, scripts: Scripts, ids: NamespaceIds) {
    this.#isAvailable = isAvailable;
    this.#scripts = scripts;
    this.#ids = ids;
  }

  async plan(change: ObjectChange): Promise<ObjectPlan> {
    const taken: string[] = [];
    const newId = (group: string): string => {
      const id = this.#ids.newId(group);
      taken.push(id);
      return id;
    };
    try {
      return await this.#plan(change, newId);
    } catch (error) {
      // Nothing was stored, and a cell has few spare ids, so they are returned.
      for (const id of taken.toReversed()) this.#ids.giveBack(id);
      throw error;
    }
  }

  async #plan(change: ObjectChange, newId: NamespaceIds["newId"]): Promise<ObjectPlan> {
    const { trx, script, migrations, exports, bindings } = change;
    const own = await store.ofScript(trx, script.id);
    const bindsObjects = bindings.some(({ type }) => type === "durable_object_namespace");
    if (migrations === undefined && (exports?.size ?? 0) === 0 && own.length === 0 && !bindsObjects)
      return {
        bindings,
        classes: [],
        transfers: {},
        migrationTag: script.migrationTag,
        write: async () => {},
      };
    if (!this.#isAvailable) throw objectErrors.unavailable();
    const classes = new ObjectClasses(change, own, newId);
    if (migrations !== undefined) {
      if (migrations.oldTag !== script.migrationTag) throw objectErrors.tag(script.migrationTag);
      for (const step of migrations.steps) await this.#apply(step, classes, change);
    }
    const reconciler = exports && new Reconciler(change, classes, this.#scripts);
    const reconciliation = await reconciler?.run();
    const transfers = reconciler === undefined ? change.transfers : Object.fromEntries(reconciler.transfers);
    classes.checkExports();
    const resolved = await this.#resolved({ ...change, transfers }, classes);
    return {
      bindings: resolved,
      // A class that is expected from another script must be able to run as soon as that script gives it away.
      classes: [...new Set([...classes.names, ...Object.keys(transfers)])].sort(),
      transfers,
      reconciliation,
      migrationTag: migrations?.newTag ?? script.migrationTag,
      write: async () => classes.write(),
    };
  }

  async #apply(step: MigrationStep, classes: ObjectClasses, { trx, owner }: ObjectChange): Promise<void> {
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

  /** The bindings of a version; bindings to namespaces get the namespaces' ids. */
  async #resolved(change: ObjectChange, classes: ObjectClasses): Promise<StoredBinding[]> {
    const resolved: StoredBinding[] = [];
    for (const binding of change.bindings)
      resolved.push(
        binding.type === "durable_object_namespace" ? await this.#resolve(binding, change, classes) : binding,
      );
    return resolved;
  }

  /** The namespace of a class that another script will transfer: bindings reach it there until then. */
  async #expected(
    className: string,
    { trx, owner, transfers }: ObjectChange,
  ): Promise<ObjectNamespace | undefined> {
    const from = transfers[className];
    const source = from === undefined ? undefined : this.#scripts.find(owner, from);
    return source && (await store.ofScript(trx, source.id)).find((each) => each.className === className);
  }

  async #resolve(
    binding: ObjectBinding,
    change: ObjectChange,
    classes: ObjectClasses,
  ): Promise<ObjectBinding> {
    const { trx, owner, script } = change;
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
      const found = classes.byName(name) ?? (await this.#expected(name, change));
      if (found === undefined) throw objectErrors.binding(name);
      return { ...binding, namespace_id: found.id };
    }
    const other = owner.namespace === undefined ? this.#scripts.find(owner, scriptName) : undefined;
    const found = other && (await store.ofScript(trx, other.id)).find(({ className }) => className === name);
    if (found === undefined) throw objectErrors.binding(name);
    return { ...binding, namespace_id: found.id };
  }
}
