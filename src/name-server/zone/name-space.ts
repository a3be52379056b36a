import { rootName, parentOf, type NameKey } from "../wire/name.ts";
import type { ServedZone } from "./zone.ts";

/** The zones that are served. */
export class NameSpace {
  /** Counts every change of anything; answers made of several names hold for one number only. */
  epoch = 0;
  readonly #byKey = new Map<NameKey, ServedZone>();
  readonly #byId = new Map<string, ServedZone>();

  get(id: string): ServedZone | undefined {
    return this.#byId.get(id);
  }

  zones(): Iterable<ServedZone> {
    return this.#byId.values();
  }

  add(zone: ServedZone): void {
    this.epoch++;
    this.#byKey.set(zone.key, zone);
    this.#byId.set(zone.facts.id, zone);
  }

  remove(id: string): void {
    const zone = this.#byId.get(id);
    if (zone === undefined) return;
    this.epoch++;
    this.#byId.delete(id);
    if (this.#byKey.get(zone.key) === zone) this.#byKey.delete(zone.key);
  }

  /** The zone that a name is in: the longest of its suffixes that is one. */
  find(name: NameKey): ServedZone | undefined {
    for (let rest = name; rest !== rootName; rest = parentOf(rest)) {
      const zone = this.#byKey.get(rest);
      if (zone !== undefined) return zone;
    }
    return undefined;
  }

  /** The zone that has a name's DS record: that of the parent, at an apex. */
  findParent(name: NameKey): ServedZone | undefined {
    const zone = this.find(name);
    return zone?.key === name ? (this.find(parentOf(name)) ?? zone) : zone;
  }
}
