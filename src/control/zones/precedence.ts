import type { Zone } from "./zone.ts";

/** The properties that decide which of several zones serves a name inside all of them. */
export type Standing = Pick<
  Zone,
  "id" | "accountId" | "name" | "status" | "activatedOn" | "createdOn" | "authorizedBy"
>;

/** Picks these properties of a zone. */
export const standingOf = ({
  id,
  accountId,
  name,
  status,
  activatedOn,
  createdOn,
  authorizedBy,
}: Standing): Standing => ({ id, accountId, name, status, activatedOn, createdOn, authorizedBy });

/**
 * Whether a zone, rather than the other account's zone around it, serves its names. An inactive zone never
 * prevails over an active or older one. An active zone prevails if it is authorized or became active first.
 */
export function prevails(inner: Standing, outer: Standing): boolean {
  if (inner.status !== "active") {
    return outer.status !== "active" && inner.createdOn < outer.createdOn;
  }
  if (outer.status !== "active" || isAuthorized(inner, outer)) return true;
  return (inner.activatedOn ?? inner.createdOn) < (outer.activatedOn ?? outer.createdOn);
}

/** Authorized by the records of the outer zone, or by a TXT record in the public DNS for its own name. */
export const isAuthorized = ({ authorizedBy, name }: Standing, outer: Standing): boolean =>
  authorizedBy !== null && (authorizedBy === outer.name || authorizedBy === name);

/** Given zones that each contain the next, returns the zone that serves the names of the last one. */
export function governing<Z extends Standing>(chain: readonly Z[]): Z | undefined {
  return chain.reduce<Z | undefined>(
    (outer, inner) =>
      outer === undefined || inner.accountId === outer.accountId || prevails(inner, outer) ? inner : outer,
    undefined,
  );
}

export const isInside = (name: string, zoneName: string): boolean => name.endsWith(`.${zoneName}`);

/** "b.c" and "c" for "a.b.c". */
export function* ancestorsOf(name: string): Generator<string> {
  for (let dot = name.indexOf("."); dot >= 0; dot = name.indexOf(".", dot + 1)) yield name.slice(dot + 1);
}

/**
 * Finds the zone that serves a name, for every lookup in the platform: the longest suffix, unless that zone
 * yields to one around it. Yielding zones are precomputed, so a lookup costs only the search for the longest
 * suffix.
 */
export class Precedence {
  readonly #byId = new Map<string, Standing>();
  readonly #byName = new Map<string, Standing>();
  /** The zones inside each name, except top-level domains. */
  readonly #inside = new Map<string, Set<Standing>>();
  readonly #yielding = new Map<string, string>();

  /** Adds or updates a zone. */
  set(zone: Standing): void {
    const { id, name } = zone;
    this.#drop(id);
    const standing = standingOf(zone);
    this.#byId.set(id, standing);
    this.#byName.set(name, standing);
    for (const suffix of ancestorsOf(name)) {
      if (!suffix.includes(".")) continue;
      const inside = this.#inside.get(suffix);
      if (inside === undefined) this.#inside.set(suffix, new Set([standing]));
      else inside.add(standing);
    }
    this.#decide(standing);
  }

  delete(id: string): void {
    const standing = this.#drop(id);
    if (standing !== undefined) this.#decide(standing);
  }

  /** The id of the zone that serves a zone's names: itself, or the zone around it to which it yields. */
  governorOf(id: string): string {
    return this.#yielding.size === 0 ? id : (this.#yielding.get(id) ?? id);
  }

  /** The id of the zone that serves a name; undefined if none does. */
  find(name: string): string | undefined {
    const longest = this.#byName.get(name) ?? this.#nearest(name);
    return longest && this.governorOf(longest.id);
  }

  /** The id of the zone that would serve a zone's name if that zone did not exist. */
  around(name: string): string | undefined {
    const nearest = this.#nearest(name);
    return nearest && this.governorOf(nearest.id);
  }

  #nearest(name: string): Standing | undefined {
    for (const suffix of ancestorsOf(name)) {
      const zone = this.#byName.get(suffix);
      if (zone !== undefined) return zone;
    }
    return undefined;
  }

  #drop(id: string): Standing | undefined {
    const standing = this.#byId.get(id);
    if (standing === undefined) return undefined;
    this.#byId.delete(id);
    this.#yielding.delete(id);
    if (this.#byName.get(standing.name) === standing) this.#byName.delete(standing.name);
    for (const suffix of ancestorsOf(standing.name)) {
      const inside = this.#inside.get(suffix);
      inside?.delete(standing);
      if (inside?.size === 0) this.#inside.delete(suffix);
    }
    return standing;
  }

  /** Recomputes the precedence of a zone, which may have been removed, and of all zones inside it. */
  #decide({ id, name }: Standing): void {
    const own = this.#byId.get(id);
    for (const zone of [...(own === undefined ? [] : [own]), ...(this.#inside.get(name) ?? [])]) {
      const governor = governing(this.#chainOf(zone));
      if (governor === zone) this.#yielding.delete(zone.id);
      else this.#yielding.set(zone.id, governor!.id);
    }
  }

  /** A zone and the zones around it, outermost first. */
  #chainOf(zone: Standing): Standing[] {
    const chain = [zone];
    for (const suffix of ancestorsOf(zone.name)) {
      const outer = this.#byName.get(suffix);
      if (outer !== undefined) chain.unshift(outer);
    }
    return chain;
  }
}
