import { FreshReads } from "../../../platform/storage/changes/fresh-reads.ts";
import type { Storage } from "../../../platform/storage/storage.ts";
import { newId, newUuid } from "../../../platform/util/ids.ts";
import type { Zone } from "../../../control/zones/zone.ts";
import type { Zones } from "../../../control/zones/zones.ts";
import type { DomainRecords } from "./domain-records.ts";
import type { Scripts } from "../scripts.ts";
import * as store from "./store-routes.ts";
import { scriptDomainErrors } from "./errors.ts";

/** A custom domain: a host name of a zone whose requests all go to one script. */
export interface Domain {
  id: string;
  accountId: string;
  zoneId: string;
  hostname: string;
  service: string;
  certId: string;
}

const hostnamePattern = /^(?=.{1,253}$)([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9])?\.)+[a-z0-9-]+$/;

/** Custom domains of scripts. All of them are in memory. */
export class Domains {
  readonly #storage: Storage;
  readonly #scripts: Scripts;
  readonly #zones: Zones;
  readonly #records: DomainRecords;
  readonly #reads: FreshReads<Domain[]>;
  #byHost = new Map<string, Domain>();

  constructor(storage: Storage, scripts: Scripts, zones: Zones, records: DomainRecords) {
    this.#storage = storage;
    this.#scripts = scripts;
    this.#zones = zones;
    this.#records = records;
    this.#reads = new FreshReads(
      () => store.listDomains(storage.read),
      (domains) => (this.#byHost = new Map(domains.map((domain) => [domain.hostname, domain]))),
    );
    storage.onChange(async (changes) => {
      if (changes.some(({ kind, id }) => kind === "worker_domain" || (kind === "zone" && this.#hasZone(id))))
        await this.start();
    }, this.#reads.reload);
    // A script's domains are deleted with it.
    scripts.onDelete(async (trx, { accountId, namespaceId, name }, changed) => {
      if (namespaceId !== null) return;
      const domains = await store.listDomains(trx);
      const ids = domains.flatMap((each) =>
        each.accountId === accountId && each.service === name ? [each.id] : [],
      );
      await store.removeDomains(trx, ids);
      for (const id of ids) changed({ kind: "worker_domain", id });
    });
  }

  async start(): Promise<void> {
    await this.#reads.load();
  }

  ofHost(host: string): Domain | undefined {
    return this.#byHost.get(host);
  }

  /** The domain that serves a host: it must belong to the account whose zone governs the host. */
  servedAt(host: string): Domain | undefined {
    const domain = this.#byHost.get(host);
    return domain && this.#zones.governing(host)?.accountId === domain.accountId ? domain : undefined;
  }

  list(accountId: string): Domain[] {
    return [...this.#byHost.values()].filter((domain) => domain.accountId === accountId);
  }

  get(accountId: string, id: string): Domain {
    const domain = this.list(accountId).find((each) => each.id === id);
    if (domain === undefined) throw scriptDomainErrors.notFound(id);
    return domain;
  }

  /** The domains of one script. */
  listOf(accountId: string, service: string): Domain[] {
    return this.list(accountId).filter((domain) => domain.service === service);
  }

  /**
   * Gives a host name to a script. Takes it from another script, or replaces DNS records, only if the caller
   * says so.
   */
  async put(
    zone: Zone,
    hostname: string,
    service: string,
    may: { takeOver: boolean; replaceRecords: boolean },
  ): Promise<Domain> {
    const host = hostname.toLowerCase();
    const isInZone = host === zone.name || host.endsWith(`.${zone.name}`);
    if (!isInZone || !hostnamePattern.test(host)) throw scriptDomainErrors.outside(hostname);
    if (this.#zones.governing(host)?.accountId !== zone.accountId) throw scriptDomainErrors.foreign(host);
    this.#scripts.get({ accountId: zone.accountId }, service);
    const before = this.#byHost.get(host);
    // A domain left by an account that the host does not belong to any more is replaced.
    const known = before?.accountId === zone.accountId ? before : undefined;
    if (known !== undefined && known.service !== service && !may.takeOver)
      throw scriptDomainErrors.taken(host, known.service);
    await this.#records.lead(zone, host, may.replaceRecords);
    const domain: Domain = {
      id: known?.id ?? newId(),
      accountId: zone.accountId,
      zoneId: zone.id,
      hostname: host,
      service,
      certId: known?.certId ?? newUuid(),
    };
    await this.#storage.write(async (trx, changed) => {
      await this.#scripts.lock(trx, { accountId: zone.accountId }, service);
      if (before !== undefined && known === undefined) {
        await store.removeDomains(trx, [before.id]);
        changed({ kind: "worker_domain", id: before.id });
      }
      await store.putDomain(trx, domain);
      changed({ kind: "worker_domain", id: domain.id });
    });
    return domain;
  }

  async delete(domains: readonly Domain[]): Promise<void> {
    if (domains.length === 0) return;
    const ids = domains.map(({ id }) => id);
    await this.#storage.write(async (trx, changed) => {
      await store.removeDomains(trx, ids);
      for (const id of ids) changed({ kind: "worker_domain", id });
    });
    for (const { zoneId, hostname } of domains) {
      const zone = this.#zones.find(zoneId);
      if (zone !== undefined) await this.#records.drop(zone, hostname);
    }
  }

  #hasZone(zoneId: string): boolean {
    return [...this.#byHost.values()].some((domain) => domain.zoneId === zoneId);
  }
}
