import type { Storage } from "../storage/storage.ts";
import type { Zone } from "../zones/zone.ts";
import type { Zones } from "../zones/zones.ts";
import type { CertificatePacks } from "./packs.ts";
import type { ZoneSettings } from "./zone-settings.ts";

/** Keeps one certificate pack for each active zone, unless its owner wants none. */
export class UniversalPacks {
  readonly #zones: Zones;
  readonly #packs: CertificatePacks;
  readonly #settings: ZoneSettings;
  readonly #method: "txt" | "http";
  /** Zones of which something has changed since their packs were set. */
  readonly #changed = new Set<string>();

  /** `method` is for zones that are answered here; for others the authority has to ask over HTTP. */
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
    storage.onChange(async (changes) => {
      for (const { kind, id, parentId } of changes) {
        if (kind === "dns_record" && parentId !== undefined) this.#changed.add(parentId);
        else if (kind === "zone" || kind === "zone_setting") this.#changed.add(id);
      }
    });
    for (const zone of zones.list()) this.#changed.add(zone.id);
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
      zone.status === "active" && !zone.paused && this.#settings.value(zone.id, "universal_ssl") === "on";
    if (!isWanted) return [];
    return method === "txt" ? [zone.name, `*.${zone.name}`] : this.#packs.proxiedNames(zone);
  }
}
