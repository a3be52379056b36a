import { reloadByForgetting } from "../../../platform/storage/changes/listeners.ts";
import type { Storage } from "../../../platform/storage/storage.ts";
import type { Zone } from "../../../control/zones/zone.ts";
import type { Zones } from "../../../control/zones/zones.ts";
import type { CertificatePacks } from "./packs.ts";
import type { ZoneSettings } from "../../../control/zone-settings/zone-settings.ts";

/** Maintains one universal certificate pack for each active zone that has not disabled it. */
export class UniversalPacks {
  readonly #zones: Zones;
  readonly #packs: CertificatePacks;
  readonly #settings: ZoneSettings;
  readonly #method: "txt" | "http";
  /** Zones that changed since their packs were updated. */
  readonly #changed = new Set<string>();

  /** `method` applies to zones served by this installation's name servers; others are validated over HTTP. */
  constructor(
    storage: Storage,
    zones: Zones,
    packs: CertificatePacks,
    settings: ZoneSettings,
    method: "txt" | "http",
  ) {
    this.#zones = zones;
    this.#packs = packs;
    this.#settings = settings;
    this.#method = method;
    const changeAll = (): void => zones.list().forEach(({ id }) => this.#changed.add(id));
    storage.onChange(async (changes) => {
      for (const { kind, id, parentId } of changes) {
        if (kind === "dns_record" && parentId !== undefined) this.#changed.add(parentId);
        else if (kind === "zone" || kind === "zone_setting") this.#changed.add(id);
      }
    }, reloadByForgetting(changeAll));
    changeAll();
  }

  get hasChanges(): boolean {
    return this.#changed.size > 0;
  }

  async update(): Promise<void> {
    for (const id of [...this.#changed]) {
      this.#changed.delete(id);
      const zone = this.#zones.find(id);
      if (zone === undefined) continue;
      const method = zone.type === "full" ? this.#method : "http";
      await this.#packs.setUniversal(zone, await this.#hosts(zone, method), method);
    }
  }

  async #hosts(zone: Zone, method: "txt" | "http"): Promise<string[]> {
    const isWanted =
      zone.status === "active" &&
      !zone.paused &&
      this.#zones.governs(zone) &&
      this.#settings.value(zone.id, "universal_ssl") === "on";
    if (!isWanted) return [];
    if (method === "txt") return [zone.name, `*.${zone.name}`];
    const names = await this.#packs.proxiedNames(zone);
    return names.filter((name) => this.#zones.governing(name)?.accountId === zone.accountId);
  }
}
