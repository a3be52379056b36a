import type { Storage } from "../../platform/storage/storage.ts";
import { noteRecordChange } from "../../control/zones/store.ts";
import * as store from "./store-settings.ts";

/** A zone's DNS settings, with the API's field names. Times are in seconds. */
export interface DnsSettings {
  /** Answer every CNAME with the addresses of its target. */
  flatten_all_cnames: boolean;
  /** Include other providers' name servers, from the zone's NS records, in answers. */
  multi_provider: boolean;
  ns_ttl: number;
  soa: {
    /** The primary name server; null for the zone's first. */
    mname: string | null;
    /** The administrator's email address with a dot in place of "@"; null for `dns.` and the zone's name. */
    rname: string | null;
    refresh: number;
    retry: number;
    expire: number;
    min_ttl: number;
    ttl: number;
  };
}

export const dnsSettingsDefaults: DnsSettings = {
  flatten_all_cnames: false,
  multi_provider: false,
  ns_ttl: 86_400,
  soa: { mname: null, rname: null, refresh: 10_000, retry: 2400, expire: 604_800, min_ttl: 1800, ttl: 3600 },
};

/** The settings of zones that differ from the defaults, in memory. */
export class DnsSettingsOfZones {
  readonly #storage: Storage;
  #settings = new Map<string, DnsSettings>();

  constructor(storage: Storage) {
    this.#storage = storage;
    storage.onChange(
      async (changes) => {
        for (const { kind, id } of changes) {
          if (kind !== "dns_settings" && !(kind === "zone" && this.#settings.has(id))) continue;
          const settings = await store.find(storage.read, id);
          if (settings === undefined) this.#settings.delete(id);
          else this.#settings.set(id, settings);
        }
      },
      async () => this.#read(),
    );
  }

  async load(): Promise<void> {
    (await this.#read())();
  }

  async #read(): Promise<() => void> {
    const rows = await store.loadAll(this.#storage.read);
    const all = new Map(rows.map(({ zoneId, settings }) => [zoneId, settings]));
    return () => (this.#settings = all);
  }

  find(zoneId: string): DnsSettings {
    return this.#settings.get(zoneId) ?? dnsSettingsDefaults;
  }

  async save(zoneId: string, settings: DnsSettings): Promise<void> {
    await this.#storage.write(async (trx, changed) => {
      await store.save(trx, zoneId, settings);
      await noteRecordChange(trx, zoneId, 0);
      changed({ kind: "dns_settings", id: zoneId });
    });
  }
}
