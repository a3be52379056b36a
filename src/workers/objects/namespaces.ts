import { FreshReads } from "../../platform/storage/changes/fresh-reads.ts";
import type { Storage } from "../../platform/storage/storage.ts";
import type { Script } from "../scripts/script.ts";
import type { Scripts } from "../scripts/scripts.ts";
import type { ObjectNamespace } from "./namespace.ts";
import * as store from "./store.ts";

/** The owner of cells of objects: an account, or the customers of one of its dispatch namespaces. */
export const groupOf = ({ accountId, namespaceId }: Pick<Script, "accountId" | "namespaceId">): string =>
  namespaceId === null ? accountId : `${accountId} ${namespaceId}`;

/** The owner of cells of objects of the platform itself, such as databases. No customer's code runs in them. */
export const platformGroupOf = (accountId: string): string => `platform ${accountId}`;

/** All namespaces of Durable Objects, in memory: calls look them up. */
export class ObjectNamespaces {
  readonly #storage: Storage;
  readonly #scripts: Scripts;
  readonly #reads: FreshReads<ObjectNamespace[]>;
  readonly #byId = new Map<string, ObjectNamespace>();
  readonly #byScript = new Map<string, Set<string>>();
  readonly #goneListeners: ((id: string) => void)[] = [];

  constructor(storage: Storage, scripts: Scripts) {
    this.#storage = storage;
    this.#scripts = scripts;
    this.#reads = new FreshReads(
      () => store.loadAll(storage.read),
      (all) => this.#replaceAll(all),
    );
    storage.onChange(async (changes) => {
      for (const { kind, id } of changes)
        if (kind === "object_namespace") this.#set(id, await store.findById(storage.read, id));
        else if (kind === "account") await this.#reads.load(); // namespaces of the platform are deleted with their account
    }, this.#reads.reload);
    // Scripts are also deleted with their account or dispatch namespace, and their namespaces with them.
    scripts.onGone((scriptId) => {
      for (const id of [...(this.#byScript.get(scriptId) ?? [])]) this.#set(id, undefined);
    });
  }

  async start(): Promise<void> {
    await this.#reads.load();
  }

  #replaceAll(all: readonly ObjectNamespace[]): void {
    const stored = new Set(all.map(({ id }) => id));
    for (const id of [...this.#byId.keys()]) if (!stored.has(id)) this.#set(id, undefined);
    for (const namespace of all) this.#set(namespace.id, namespace);
  }

  /** Calls `listener` for each deleted namespace. */
  onGone(listener: (id: string) => void): void {
    this.#goneListeners.push(listener);
  }

  find(id: string): ObjectNamespace | undefined {
    return this.#byId.get(id);
  }

  /** The namespaces of an account's scripts, oldest first. */
  list(accountId: string): ObjectNamespace[] {
    const all = [...this.#byId.values()].filter(
      (each) => each.accountId === accountId && each.scriptId !== null,
    );
    return all.sort((a, b) => a.createdOn - b.createdOn || (a.id < b.id ? -1 : 1));
  }

  /** Ids of all namespaces of an account, including those of its databases. */
  ofAccount(accountId: string): string[] {
    return [...this.#byId.values()].filter((each) => each.accountId === accountId).map(({ id }) => id);
  }

  /** Ids of the namespaces whose objects share cells. */
  ofGroup(group: string): string[] {
    return [...this.#byId.values()]
      .filter(({ scriptId, accountId }) => {
        if (scriptId === null) return group === platformGroupOf(accountId);
        const script = this.#scripts.findById(scriptId);
        return script !== undefined && groupOf(script) === group;
      })
      .map(({ id }) => id);
  }

  /** Returns the given ids for which the database has a namespace. */
  async existing(ids: readonly string[]): Promise<Set<string>> {
    const all = await store.loadAll(this.#storage.read);
    const stored = new Set(all.map(({ id }) => id));
    return new Set(ids.filter((id) => stored.has(id)));
  }

  #set(id: string, namespace: ObjectNamespace | undefined): void {
    const before = this.#byId.get(id);
    if (before?.scriptId != null) this.#byScript.get(before.scriptId)?.delete(id);
    if (namespace === undefined) {
      this.#byId.delete(id);
      if (before !== undefined) for (const listener of this.#goneListeners) listener(id);
      return;
    }
    this.#byId.set(id, namespace);
    if (namespace.scriptId === null) return;
    const siblings = this.#byScript.get(namespace.scriptId);
    if (siblings === undefined) this.#byScript.set(namespace.scriptId, new Set([id]));
    else siblings.add(id);
  }
}
