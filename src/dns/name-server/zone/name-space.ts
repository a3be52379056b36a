import { Precedence } from "../../../control/zones/precedence.ts";
import { rootName, parentOf, type NameKey } from "../wire/name.ts";
import type { ServedZone } from "./zone.ts";

/** The served zones. */
export class NameSpace {
  /** Incremented by every change. Answers that use several names are valid for one epoch only. */
  epoch = 0;
  readonly #byKey = new Map<NameKey, ServedZone>();
  readonly #byId = new Map<string, ServedZone>();
  readonly #precedence = new Precedence();

  get(id: string): ServedZone | undefined {
    return this.#byId.get(id);
  }

  zones(): Iterable<ServedZone> {
    return this.#byId.values();
  }

  add(zone: ServedZone): void {
    this.epoch++;
    this.#byKey.set(zone.key, zone);
    this.#byId.set(zone.configuration.id, zone);
    this.reconfigured(zone);
  }

  /** Call this after the configuration of a zone changes. */
  reconfigured({ configuration }: ServedZone): void {
    this.epoch++;
    if (configuration.standing !== undefined) this.#precedence.set(configuration.standing);
  }

  remove(id: string): void {
    const zone = this.#byId.get(id);
    if (zone === undefined) return;
    this.epoch++;
    this.#byId.delete(id);
    this.#precedence.delete(id);
    if (this.#byKey.get(zone.key) === zone) this.#byKey.delete(zone.key);
  }

  /** The zone of a name: the longest suffix that is a zone, unless it yields to another account's zone. */
  find(name: NameKey): ServedZone | undefined {
    for (let rest = name; rest !== rootName; rest = parentOf(rest)) {
      const zone = this.#byKey.get(rest);
      if (zone === undefined) continue;
      const governor = this.#precedence.governorOf(zone.configuration.id);
      return governor === zone.configuration.id ? zone : this.#byId.get(governor);
    }
    return undefined;
  }

  /** The zone with the DS record of a name, which is the parent zone at an apex. */
  findParent(name: NameKey): ServedZone | undefined {
    const zone = this.find(name);
    return zone?.key === name ? (this.find(parentOf(name)) ?? zone) : zone;
  }
}
