import type { Account, Accounts } from "../../../control/accounts/accounts.ts";
import { isUniqueViolation } from "../../../platform/storage/dialects.ts";
import { FreshReads } from "../../../platform/storage/changes/fresh-reads.ts";
import type { Storage } from "../../../platform/storage/storage.ts";
import * as store from "./store-routes.ts";
import { subdomainErrors } from "./errors.ts";

const pattern = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

/**
 * The subdomain of each account for scripts without a zone. Every account has one from the start, because the
 * clients deploy nothing without it.
 */
export class Subdomains {
  readonly #storage: Storage;
  readonly #accounts: Accounts;
  readonly #gives: boolean;
  readonly #reads: FreshReads<Awaited<ReturnType<typeof store.listSubdomains>>>;
  #byAccount = new Map<string, string | null>();
  #byName = new Map<string, string>();

  /** `gives`: whether this process gives subdomains to accounts without one. Only main does. */
  constructor(storage: Storage, accounts: Accounts, gives = true) {
    this.#gives = gives;
    this.#storage = storage;
    this.#accounts = accounts;
    this.#reads = new FreshReads(
      () => store.listSubdomains(storage.read),
      (all) => {
        this.#byAccount = new Map(all.map(({ accountId, subdomain }) => [accountId, subdomain]));
        this.#byName = new Map(
          all.flatMap(({ accountId, subdomain }) => (subdomain === null ? [] : [[subdomain, accountId]])),
        );
      },
    );
    storage.onChange(async (changes) => {
      if (changes.some(({ kind }) => kind === "account")) await this.start();
      else if (changes.some(({ kind }) => kind === "account_subdomain")) await this.#reads.load();
    }, this.#reads.reload);
  }

  /** Reads the subdomains, and gives one to every account without. Call it after the accounts have been read. */
  async start(): Promise<void> {
    await this.#reads.load();
    if (!this.#gives) return;
    for (const account of this.#accounts.list()) await this.of(account);
  }

  accountOf(name: string): string | undefined {
    return this.#byName.get(name);
  }

  /** Null if it was deleted. */
  async of(account: Account): Promise<string | null> {
    const known = this.#byAccount.get(account.id);
    if (known !== undefined) return known;
    for (const name of candidates(account)) {
      await this.#storage.write(async (trx, changed) => {
        await store.addSubdomain(trx, account.id, name);
        changed({ kind: "account_subdomain", id: account.id });
      });
      const added = this.#byAccount.get(account.id);
      if (added !== undefined) return added;
    }
    return null;
  }

  async set(account: Account, name: string): Promise<void> {
    if (!pattern.test(name)) throw subdomainErrors.invalid(name);
    try {
      await this.#put(account.id, name);
    } catch (error) {
      throw isUniqueViolation(error) ? subdomainErrors.taken(name) : error;
    }
  }

  async delete(account: Account): Promise<void> {
    await this.#put(account.id, null);
  }

  async #put(accountId: string, name: string | null): Promise<void> {
    await this.#storage.write(async (trx, changed) => {
      await store.putSubdomain(trx, accountId, name);
      changed({ kind: "account_subdomain", id: accountId });
    });
  }
}

/** Candidates for a subdomain: the account's name as a label, then with a part of its id, then the id. */
function candidates({ id, name }: Account): string[] {
  const spelled = name.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-");
  const label = spelled.slice(0, 50).replaceAll(/^-+|(?<!-)-+$/g, "");
  return [...(label === "" ? [] : [label, `${label}-${id.slice(0, 6)}`]), `account-${id}`];
}
