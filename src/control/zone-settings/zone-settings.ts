import { z } from "zod";
import { sslModes, type SslMode } from "./ssl-mode.ts";
import type { Change, Storage, Write } from "../../platform/storage/storage.ts";
import * as store from "./store-settings.ts";
import { clock } from "../../platform/timers/clock.ts";

const onOff = z.enum(["off", "on"]);
/** A host, `*` or `*.host`, with an optional path prefix. */
const origin = String.raw`(?:\*|(?:\*\.)?[a-z0-9_-]+(?:\.[a-z0-9_-]+)*)(?:\/[^\s,]*)?`;
const allowedOrigins = z
  .string()
  .max(4096)
  .regex(new RegExp(`^(?:${origin}(?:\\s*,\\s*${origin})*)?$`, "i"), {
    error: "comma-separated hosts, such as images.example.com/photos,*.example.net",
  });

/** The settings of a zone and the schemas of their values. */
export const settingSchemas = {
  ssl: z.enum(sslModes),
  always_use_https: onOff,
  universal_ssl: onOff,
  transformations: z.enum(["off", "on", "open"]),
  transformations_allowed_origins: allowedOrigins,
} as const;
export type SettingId = keyof typeof settingSchemas;
type Values = { [S in SettingId]: z.output<(typeof settingSchemas)[S]> };

/** The settings of all zones. They are in memory, because every request needs them. */
export class ZoneSettings {
  readonly #storage: Storage;
  readonly #defaults: Values;
  #zones = new Map<string, ReadonlyMap<string, store.ZoneSettingRow>>();

  constructor(storage: Storage, defaultSsl: SslMode) {
    this.#storage = storage;
    this.#defaults = {
      ssl: defaultSsl,
      always_use_https: "off",
      universal_ssl: "on",
      transformations: "off",
      transformations_allowed_origins: "",
    };
    storage.onChange(
      async (changes) => {
        for (const { kind, id } of changes) {
          if (kind === "zone_setting")
            this.#zones.set(id, bySetting(await store.listOfZone(storage.read, id)));
        }
      },
      async () => this.#read(),
    );
  }

  async load(): Promise<void> {
    (await this.#read())();
  }

  async #read(): Promise<() => void> {
    const rows = Map.groupBy(await store.loadAll(this.#storage.read), (row) => row.zoneId);
    const zones = new Map([...rows].map(([zoneId, list]) => [zoneId, bySetting(list)]));
    return () => (this.#zones = zones);
  }

  value<S extends SettingId>(zoneId: string, setting: S): Values[S] {
    const row = this.#zones.get(zoneId)?.get(setting);
    return (row?.value as Values[S] | undefined) ?? this.#defaults[setting];
  }

  /** In milliseconds; undefined while the setting has its default. */
  modifiedOn(zoneId: string, setting: SettingId): number | undefined {
    return this.#zones.get(zoneId)?.get(setting)?.modifiedOn;
  }

  async set<S extends SettingId>(zoneId: string, setting: S, value: Values[S]): Promise<void> {
    await this.setAll(zoneId, new Map([[setting, value]]));
  }

  /** Sets several settings in one transaction, in which `also` runs too. */
  async setAll(
    zoneId: string,
    values: ReadonlyMap<SettingId, string>,
    also?: (trx: Write, changed: (change: Change) => void) => Promise<void>,
  ): Promise<void> {
    const isNews = (setting: SettingId, value: string): boolean =>
      this.modifiedOn(zoneId, setting) === undefined || this.value(zoneId, setting) !== value;
    const news = [...values].filter(([setting, value]) => isNews(setting, value));
    if (news.length === 0 && also === undefined) return;
    await this.#storage.write(async (trx, changed) => {
      for (const [setting, value] of news)
        await store.put(trx, { zoneId, setting, value, modifiedOn: clock.now() });
      if (news.length > 0) changed({ kind: "zone_setting", id: zoneId, parentId: zoneId });
      await also?.(trx, changed);
    });
  }

  forget(zoneId: string): void {
    this.#zones.delete(zoneId);
  }
}

const bySetting = (rows: readonly store.ZoneSettingRow[]): ReadonlyMap<string, store.ZoneSettingRow> =>
  new Map(rows.map((row) => [row.setting, row]));
