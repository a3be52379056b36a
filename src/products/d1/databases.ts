import { inputErrors } from "../../platform/domain-error.ts";
import { isUniqueViolation } from "../../platform/storage/dialects.ts";
import { FreshReads } from "../../platform/storage/changes/fresh-reads.ts";
import type { Storage } from "../../platform/storage/storage.ts";
import type { PlatformNamespaces } from "../../workers/objects/platform-namespaces.ts";
import { databaseLimits, namespaceOf, type D1Database } from "./database.ts";
import { d1Errors } from "./errors.ts";
import * as store from "./store.ts";
import { removeUsage } from "./usage/store-usage.ts";
import { clock } from "../../platform/timers/clock.ts";

/** The databases of all accounts, in memory: every query looks one up. */
export class Databases {
  readonly #storage: Storage;
  readonly #isAvailable: boolean;
  readonly #namespaces: PlatformNamespaces;
  readonly #reads: FreshReads<D1Database[]>;
  #byId = new Map<string, D1Database>();

  /** `isAvailable`: whether databases can run on this installation. */
  constructor(storage: Storage, namespaces: PlatformNamespaces, isAvailable: boolean) {
    this.#storage = storage;
    this.#isAvailable = isAvailable;
    this.#namespaces = namespaces;
    this.#reads = new FreshReads(
      async () => store.loadAll(storage.read),
      (all) => (this.#byId = new Map(all.map((each) => [each.id, each]))),
    );
    storage.onChange(async (changes) => {
      if (changes.some(({ kind }) => kind === "d1_database" || kind === "account")) await this.load();
    }, this.#reads.reload);
  }

  async load(): Promise<void> {
    await this.#reads.load();
  }

  /** Newest first, as in the public API. */
  list(accountId: string): D1Database[] {
    const all = [...this.#byId.values()].filter((each) => each.accountId === accountId);
    return all.sort((a, b) => b.createdOn - a.createdOn || (a.id < b.id ? -1 : 1));
  }

  has(id: string): boolean {
    return this.#byId.has(id);
  }

  find(accountId: string, id: string): D1Database | undefined {
    const database = this.#byId.get(id);
    return database?.accountId === accountId ? database : undefined;
  }

  /** The database with an id or with a name. */
  get(accountId: string, idOrName: string): D1Database {
    const database =
      this.find(accountId, idOrName) ?? this.list(accountId).find(({ name }) => name === idOrName);
    if (database === undefined) throw d1Errors.notFound(idOrName);
    return database;
  }

  async create(
    accountId: string,
    input: Pick<D1Database, "name" | "locationHint" | "jurisdiction" | "readReplication">,
  ): Promise<D1Database> {
    if (!this.#isAvailable) {
      const reason = inputErrors.absentProduct("D1");
      throw reason;
    }
    if (this.list(accountId).length >= databaseLimits.databasesOfAccount) throw d1Errors.tooMany();
    if (this.list(accountId).some(({ name }) => name === input.name)) throw d1Errors.exists(input.name);
    const namespace = this.#namespaces.newId(accountId);
    const id = namespace.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
    const database = { id, accountId, ...input, createdOn: clock.now() };
    try {
      await this.#storage.write(async (trx, changed) => {
        await store.insert(trx, database);
        await this.#namespaces.put(trx, changed, { id: namespace, accountId, className: "D1" });
        changed({ kind: "d1_database", id, parentId: accountId });
      });
    } catch (error) {
      if (!isUniqueViolation(error)) throw error;
      this.#namespaces.giveBack(namespace); // after other errors, the rows may have been stored
      throw d1Errors.exists(input.name);
    }
    return database;
  }

  async setReadReplication(database: D1Database, mode: D1Database["readReplication"]): Promise<D1Database> {
    await this.#storage.write(async (trx, changed) => {
      await store.setReadReplication(trx, database.id, mode);
      changed({ kind: "d1_database", id: database.id, parentId: database.accountId });
    });
    return { ...database, readReplication: mode };
  }

  /** Deletes a database. Its data is removed afterwards, if necessary by the next start. */
  async delete(database: D1Database): Promise<void> {
    await this.#storage.write(async (trx, changed) => {
      await store.remove(trx, database.id);
      await removeUsage(trx, database.id);
      await this.#namespaces.remove(trx, changed, { ...database, id: namespaceOf(database) });
      changed({ kind: "d1_database", id: database.id, parentId: database.accountId });
    });
  }
}
