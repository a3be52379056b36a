import { sslModes, type SslMode } from "../edge/route.ts";
import type { Storage } from "../storage/storage.ts";
import * as store from "./store-settings.ts";

/** The settings of a zone about TLS, each with the values that it may have. */
export const settingValues = {
  ssl: sslModes,
  always_use_https: ["off", "on"],
  universal_ssl: ["off", "on"],
} as const;
export type SettingId = keyof typeof settingValues;
type Values = { [S in SettingId]: (typeof settingValues)[S][number] };

/** Values of zones' settings; in memory, since every request asks. */
export class ZoneSettings {
  readonly #storage: Storage;
  readonly #defaults: Values;
  readonly #zones = new Map<string, Map<string, store.ZoneSettingRow>>();

  constructor(storage: Storage, defaultSsl: SslMode) {
    this.#storage = storage;
    this.#defaults = { ssl: defaultSsl, always_use_https: "off", universal_ssl: "on" };
    storage.onChange(async (changes) => {
      for (const { kind, id } of changes) {
        if (kind === "zone_setting") this.#set(id, await store.listOfZone(storage.read, id));
      }
    });
  }

  async load(): Promise<void> {
    const rows = Map.groupBy(await store.loadAll(this.#storage.read), (row) => row.zoneId);
    for (const [zoneId, list] of rows) this.#set(zoneId, list);
  }

  value<S extends SettingId>(zoneId: string, setting: S): Values[S] {
    const row = this.#zones.get(zoneId)?.get(setting);
    return (row?.value as Values[S] | undefined) ?? this.#defaults[setting];
  }

  /** Undefined while the default holds. */
  modifiedOn(zoneId: string, setting: SettingId): number | undefined {
    return this.#zones.get(zoneId)?.get(setting)?.modifiedOn;
  }

  async set<S extends SettingId>(zoneId: string, setting: S, value: Values[S]): Promise<void> {
    if (this.modifiedOn(zoneId, setting) !== undefined && this.value(zoneId, setting) === value) return;
    await this.#storage.write(async (trx, changed) => {
      await store.put(trx, { zoneId, setting, value, modifiedOn: Date.now() });
      changed({ kind: "zone_setting", id: zoneId, parentId: zoneId });
    });
  }

  forget(zoneId: string): void {
    this.#zones.delete(zoneId);
  }

  #set(zoneId: string, rows: readonly store.ZoneSettingRow[]): void {
    this.#zones.set(zoneId, new Map(rows.map((row) => [row.setting, row])));
  }
}
