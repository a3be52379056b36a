import type { LiveScript, RuntimeScript } from "../runtime-script.ts";
import type { ScriptOwner } from "../script.ts";
import type { Scripts } from "../scripts.ts";
import { isUniqueViolation } from "../../../platform/storage/dialects.ts";
import { FreshReads } from "../../../platform/storage/changes/fresh-reads.ts";
import type { Storage } from "../../../platform/storage/storage.ts";
import { newUuid } from "../../../platform/util/ids.ts";
import * as store from "./store.ts";
import { namespaceErrors } from "./errors.ts";
import { clock } from "../../../platform/timers/clock.ts";

export interface DispatchNamespace {
  id: string;
  accountId: string;
  name: string;
  /** Customers of a trusted namespace see `request.cf`. */
  isTrusted: boolean;
  createdOn: number;
  createdBy: string;
  modifiedOn: number;
  modifiedBy: string;
}

export type NamespaceEdit = Partial<Pick<DispatchNamespace, "name" | "isTrusted">>;

const namePattern = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,254}$/;

/** Dispatch namespaces, in which an account hosts its customers' scripts. All of them are in memory. */
export class DispatchNamespaces {
  readonly #storage: Storage;
  readonly #scripts: Scripts;
  readonly #reads: FreshReads<DispatchNamespace[]>;
  #byAccount = new Map<string, Map<string, DispatchNamespace>>();
  /** Increases with each change. */
  revision = 0;

  constructor(storage: Storage, scripts: Scripts) {
    this.#storage = storage;
    this.#scripts = scripts;
    this.#reads = new FreshReads(
      () => store.loadAll(storage.read),
      (all) => this.#replaceAll(all),
    );
    storage.onChange(async (changes) => {
      if (changes.some(({ kind }) => kind === "dispatch_namespace" || kind === "account")) await this.start();
    }, this.#reads.reload);
  }

  async start(): Promise<void> {
    await this.#reads.load();
  }

  #replaceAll(all: readonly DispatchNamespace[]): void {
    const byAccount = new Map<string, Map<string, DispatchNamespace>>();
    const gone = new Set(
      [...this.#byAccount.values()].flatMap((each) => [...each.values()].map(({ id }) => id)),
    );
    for (const namespace of all) {
      const { id, accountId, name } = namespace;
      gone.delete(id);
      const siblings = byAccount.get(accountId);
      if (siblings === undefined) byAccount.set(accountId, new Map([[name, namespace]]));
      else siblings.set(name, namespace);
    }
    this.#byAccount = byAccount;
    this.revision++;
    for (const id of gone) this.#scripts.forget(id);
  }

  find(accountId: string, name: string): DispatchNamespace | undefined {
    return this.#byAccount.get(accountId)?.get(name);
  }

  get(accountId: string, name: string): DispatchNamespace {
    const namespace = this.find(accountId, name);
    if (namespace === undefined) throw namespaceErrors.notFound(name);
    return namespace;
  }

  list(accountId: string): DispatchNamespace[] {
    return [...(this.#byAccount.get(accountId)?.values() ?? [])];
  }

  /** The version of a customer's script for a request; undefined if there is no such script. */
  live(accountId: string, namespace: string, name: string): LiveScript | undefined {
    const found = this.find(accountId, namespace);
    return found && this.#scripts.live(ownerOf(found), name);
  }

  /** The deployed version of a customer's script, with its code and secrets. */
  async load(accountId: string, namespace: string, name: string): Promise<RuntimeScript | undefined> {
    const found = this.find(accountId, namespace);
    return found && this.#scripts.loadOf(ownerOf(found), name);
  }

  async create(accountId: string, name: string, userId: string): Promise<DispatchNamespace> {
    const now = clock.now();
    return this.#save({
      id: newUuid(),
      accountId,
      name,
      isTrusted: false,
      createdOn: now,
      createdBy: userId,
      modifiedOn: now,
      modifiedBy: userId,
    });
  }

  async edit(namespace: DispatchNamespace, edit: NamespaceEdit, userId: string): Promise<DispatchNamespace> {
    return this.#save({ ...namespace, ...edit, modifiedOn: clock.now(), modifiedBy: userId });
  }

  /** Removes a namespace with all its scripts. */
  async delete(namespace: DispatchNamespace): Promise<void> {
    await this.#storage.write(async (trx, changed) => {
      await store.remove(trx, namespace.id);
      changed({ kind: "dispatch_namespace", id: namespace.id, parentId: namespace.accountId });
    });
  }

  async #save(namespace: DispatchNamespace): Promise<DispatchNamespace> {
    if (!namePattern.test(namespace.name)) throw namespaceErrors.name(namespace.name);
    try {
      await this.#storage.write(async (trx, changed) => {
        await store.put(trx, namespace);
        changed({ kind: "dispatch_namespace", id: namespace.id, parentId: namespace.accountId });
      });
    } catch (error) {
      throw isUniqueViolation(error) ? namespaceErrors.exists(namespace.name) : error;
    }
    return namespace;
  }
}

/** The owner of a namespace's scripts. */
export const ownerOf = ({ id, accountId, name }: DispatchNamespace): ScriptOwner => ({
  accountId,
  namespace: { id, name },
});
