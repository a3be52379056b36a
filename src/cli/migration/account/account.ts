import { CallRefused, MigrationError, printable } from "../failure.ts";
import type { Client } from "./client.ts";
import { objectsIn, pagesOf } from "./lists.ts";
import { path } from "./path.ts";

export interface AccountZone {
  id: string;
  name: string;
}
/** Things whose ids differ between accounts, and whose names do not. */
export type Named = "kv_namespace" | "queue" | "d1_database";

const lists: Record<Named, { path: (accountId: string) => string; id: string; name: string }> = {
  kv_namespace: {
    path: (account) => path`/accounts/${account}/storage/kv/namespaces`,
    id: "id",
    name: "title",
  },
  queue: { path: (account) => path`/accounts/${account}/queues`, id: "queue_id", name: "queue_name" },
  d1_database: { path: (account) => path`/accounts/${account}/d1/database`, id: "uuid", name: "name" },
};
const idPattern = /^[0-9a-f]{32}$/;
/** A name of DNS labels: it also becomes part of a file's name. */
const zonePattern = /^(?!.*\.\.)[a-z0-9_][a-z0-9._-]{0,251}[a-z0-9]$/;

/** An account with some of its zones: a source of resources, or the target of a file. */
export class MigratedAccount {
  readonly client: Client;
  readonly accountId: string;
  readonly zones: AccountZone[];
  readonly #names = new Map<Named, Promise<Map<string, string>>>();
  #domainHosts: Promise<ReadonlySet<string> | undefined> | undefined;

  constructor(client: Client, accountId: string, zones: readonly AccountZone[]) {
    this.client = client;
    this.accountId = accountId;
    this.zones = [...zones];
  }

  zone(name: string): AccountZone {
    const zone = this.zones.find((each) => each.name === name);
    if (zone !== undefined) return zone;
    throw new MigrationError(`The zone ${name} does not exist there`);
  }

  /** The names of all things of a kind, by id. */
  async namesOf(kind: Named): Promise<ReadonlyMap<string, string>> {
    const known = this.#names.get(kind) ?? this.#readNames(kind);
    this.#names.set(kind, known);
    return known;
  }

  async idOf(kind: Named, name: string): Promise<string> {
    for (const [id, each] of await this.namesOf(kind)) if (each === name) return id;
    throw new MigrationError(`${kind} ${printable(name)} does not exist there`);
  }

  /** Drops the cached names of a kind, after one was created or removed. */
  forget(kind: Named): void {
    this.#names.delete(kind);
  }

  /** The hosts of scripts' domains, whose records belong to them; undefined if the token cannot read them. */
  async domainHosts(): Promise<ReadonlySet<string> | undefined> {
    this.#domainHosts ??= this.#readDomainHosts();
    return this.#domainHosts;
  }

  async #readDomainHosts(): Promise<ReadonlySet<string> | undefined> {
    try {
      const { result } = await this.client.get(path`/accounts/${this.accountId}/workers/domains`);
      return new Set(objectsIn(result).map(({ hostname }) => String(hostname)));
    } catch (error) {
      if (error instanceof CallRefused && error.isAbsence) return undefined;
      throw error;
    }
  }

  forgetDomains(): void {
    this.#domainHosts = undefined;
  }

  async #readNames(kind: Named): Promise<Map<string, string>> {
    const list = lists[kind];
    const found = await pagesOf(this.client, list.path(this.accountId), 100);
    return new Map(found.map((each) => [String(each[list.id]), String(each[list.name])]));
  }
}

/**
 * An account with these zones; without names, with all its zones. The account is that of the zones, the
 * given one, or the only one.
 */
export async function findAccount(
  client: Client,
  accountId: string | undefined,
  zoneNames: readonly string[] | undefined,
  mayMiss = false,
): Promise<MigratedAccount> {
  const zones: (AccountZone & { account: string })[] = [];
  for (const name of zoneNames ?? []) {
    const found = (await zonesAt(client, `?name=${encodeURIComponent(name)}`)).filter(
      (zone) => zone.name === name && (accountId === undefined || zone.account === accountId),
    );
    if (found.length === 0 && mayMiss) continue;
    if (found.length === 0) throw new MigrationError(`The token sees no zone ${printable(name)}`);
    zones.push(found[0]!);
  }
  const accounts = new Set(accountId === undefined ? zones.map(({ account }) => account) : [accountId]);
  if (accounts.size > 1)
    throw new MigrationError("The zones belong to several accounts: import each account into its own file");
  const id = [...accounts][0] ?? (await onlyAccount(client));
  if (zoneNames !== undefined) return new MigratedAccount(client, id, zones);
  return new MigratedAccount(client, id, await zonesAt(client, `?account.id=${id}`));
}

async function zonesAt(client: Client, query: string): Promise<(AccountZone & { account: string })[]> {
  return (await pagesOf(client, `/zones${query}`, 50)).map(({ id, name, account }) => {
    const owner = String((account as { id?: unknown } | undefined)?.id);
    if (idPattern.test(String(id)) && idPattern.test(owner) && zonePattern.test(String(name)))
      return { id: String(id), name: String(name), account: owner };
    throw new MigrationError(`Expected a zone but received ${printable(JSON.stringify({ id, name }))}`);
  });
}

async function onlyAccount(client: Client): Promise<string> {
  const accounts = objectsIn((await client.get("/accounts")).result);
  const ids = accounts.map(({ id }) => String(id)).filter((id) => idPattern.test(id));
  if (ids.length === 1) return ids[0]!;
  throw new MigrationError(
    `The token sees ${ids.length} accounts. Name one in the variable …_ACCOUNT_ID: ${ids.join(", ") || "none"}`,
  );
}
