import { createHash } from "node:crypto";
import { FreshReads } from "../../platform/storage/changes/fresh-reads.ts";
import type { Storage } from "../../platform/storage/storage.ts";
import { isUniqueViolation, lockZone, lockZoneNames } from "../../platform/storage/dialects.ts";
import { newId } from "../../platform/util/ids.ts";
import type { ActivationPolicy, Proof } from "./activation.ts";
import { authorityOf, delegates, refuseAround, verificationName, type Claim } from "./authority.ts";
import type { PlanName } from "../../platform/config/plan-names.ts";
import { isInside, Precedence } from "./precedence.ts";
import * as store from "./store.ts";
import { isUnproven, zoneErrors } from "./errors.ts";
import { normalizeZoneName, type Zone } from "./zone.ts";
import { clock } from "../../platform/timers/clock.ts";

/** The change of one property of a zone. The public API accepts one property per call. */
export type ZoneEdit =
  | { paused: boolean }
  | { type: Zone["type"] }
  | { plan: PlanName }
  | { vanityNameServers: string[] };

export interface ZonesOptions {
  nameServers: readonly string[];
  defaultPlan: PlanName;
  activation: ActivationPolicy;
  /** For the test kit: zones are active from their creation on, so that no timer changes a state between two calls. */
  activatesAtOnce?: boolean;
  /** Names inside which no account may have a zone. */
  platformNames?: readonly string[];
  /** If absent, only records of zones on this installation can prove ownership of a name. */
  ownership?: Ownership;
}

/** How an account proves that it owns a name. */
export interface Ownership {
  /** The content of the TXT record that proves it. */
  keyOf: (accountId: string, zoneName: string) => string;
  isShown: Proof;
}

const localOwnership: Ownership = {
  keyOf: (accountId, zoneName) => `${accountId}-${zoneName}`,
  isShown: async () => false,
};

/** Time from a zone's creation to its first check in the public DNS, so that its creator sees it pending. */
const firstCheckMs = 1000;
/** Minimum interval between two checks of a zone's proof in the public DNS, under any activation policy. */
const proofIntervalSeconds = 300;

/**
 * The zones of this installation. All are in memory, because every call and every request at the edge needs
 * one.
 */
export class Zones {
  readonly #storage: Storage;
  readonly #options: ZonesOptions;
  readonly #ownership: Ownership;
  readonly #all: FreshReads<Zone[]>;
  readonly #zones = new Map<string, Zone>();
  readonly #precedence = new Precedence();
  /** Ids of zones by the name of the zone whose records authorize them. */
  readonly #authorized = new Map<string, Set<string>>();
  #isChecking = false;
  readonly #listeners: ((id: string, zone: Zone | undefined) => void)[] = [];

  constructor(storage: Storage, options: ZonesOptions) {
    this.#storage = storage;
    this.#options = options;
    this.#ownership = options.ownership ?? localOwnership;
    this.#all = new FreshReads(
      () => store.loadAll(storage.read),
      (zones) => this.#install(zones),
    );
    storage.onChange(async (changes) => {
      const ids = new Set(changes.flatMap((change) => (change.kind === "zone" ? [change.id] : [])));
      for (const id of ids) this.#set(id, await store.find(storage.read, id));
      if (changes.some((change) => change.kind === "account")) await this.load();
    }, this.#all.reload);
  }

  async load(): Promise<void> {
    await this.#all.load();
  }

  #install(zones: readonly Zone[]): void {
    const ids = new Set(zones.map((zone) => zone.id));
    for (const id of this.#zones.keys()) if (!ids.has(id)) this.#set(id, undefined);
    for (const zone of zones) this.#set(zone.id, zone);
  }

  /**
   * Calls `listener` for every zone that is created or changed, and with undefined for one that is deleted.
   */
  onChange(listener: (id: string, zone: Zone | undefined) => void): void {
    this.#listeners.push(listener);
  }

  find(id: string): Zone | undefined {
    return this.#zones.get(id);
  }

  list(): Zone[] {
    return [...this.#zones.values()];
  }

  /** The zone that serves a host name. */
  governing(host: string): Zone | undefined {
    const id = this.#precedence.find(host);
    return id === undefined ? undefined : this.#zones.get(id);
  }

  /**
   * Whether a zone serves its own names. A zone inside another account's zone may have to prove its ownership
   * first.
   */
  governs({ id }: Pick<Zone, "id">): boolean {
    return this.#precedence.governorOf(id) === id;
  }

  /** The key that an account publishes in the DNS to prove that it owns a name. */
  verificationKey({ accountId, name }: Pick<Zone, "accountId" | "name">): string {
    return this.#ownership.keyOf(accountId, name);
  }

  /**
   * Creates a zone, and returns it as pending, as the public API does. Throws if it would be inside or around a zone of
   * another account without authorization.
   */
  async create(input: { accountId: string; name: string; type: Zone["type"] }): Promise<Zone> {
    const now = clock.now();
    const id = newId();
    const name = normalizeZoneName(input.name);
    const reserved = this.#options.platformNames?.find((each) => isInside(name, each));
    if (reserved !== undefined) throw zoneErrors.platformName(name, reserved);
    const zone: Zone = {
      id,
      accountId: input.accountId,
      name,
      type: input.type,
      status: "pending",
      paused: false,
      plan: this.#options.defaultPlan,
      nameServers: this.#assignNameServers(input.accountId),
      vanityNameServers: [],
      verificationKey: null,
      smartRouting: "off",
      smartRoutingModifiedOn: null,
      serial: Math.floor(now / 1000),
      createdOn: now,
      modifiedOn: now,
      activatedOn: null,
      checkedOn: null,
      authorizedBy: null,
    };
    const key = this.verificationKey(zone);
    if (zone.type === "partial") zone.verificationKey = key;
    try {
      const made = await this.#withProof({ zone, key, isProved: false }, (claim) => this.#insert(claim));
      return { ...made, status: "pending", activatedOn: null, checkedOn: null };
    } catch (error) {
      throw isUniqueViolation(error) ? zoneErrors.exists(name) : error;
    }
  }

  async #insert(claim: Claim): Promise<Zone> {
    const { zone, isProved, key } = claim;
    return this.#storage.write(async (trx, changed) => {
      await lockZoneNames(this.#storage, trx);
      const related = await store.listRelated(trx, zone.name);
      const same = related.find(({ name }) => name === zone.name);
      if (same !== undefined) {
        if (same.accountId === zone.accountId || same.status === "active") throw zoneErrors.exists(zone.name);
        if (!isProved) throw zoneErrors.pendingElsewhere(zone.name, key);
        await store.remove(trx, same.id);
        changed({ kind: "zone", id: same.id });
      }
      const others = related.filter((each) => each !== same);
      refuseAround(claim, others);
      const { createdOn } = zone;
      const activation = this.#options.activatesAtOnce
        ? { status: "active" as const, activatedOn: createdOn, checkedOn: createdOn }
        : {};
      const made: Zone = { ...zone, ...activation, authorizedBy: await authorityOf(trx, claim, others) };
      await store.insert(trx, made);
      changed({ kind: "zone", id: zone.id });
      return made;
    });
  }

  /**
   * Runs the work. If it fails only because ownership is unproved and the public DNS has the proof, runs it again with
   * the proved claim.
   */
  async #withProof<T>(claim: Claim, work: (claim: Claim) => Promise<T>): Promise<T> {
    try {
      return await work(claim);
    } catch (error) {
      const { name } = claim.zone;
      if (!isUnproven(error) || this.#isServedHere(name)) throw error;
      if (!(await this.#ownership.isShown(name, claim.key))) throw error;
      return await work({ ...claim, isProved: true });
    }
  }

  /**
   * Whether an active full zone of this installation contains the name. Its records are then newer than those
   * in the public DNS.
   */
  #isServedHere(name: string): boolean {
    const outer = this.#around(name);
    return outer?.status === "active" && outer.type === "full";
  }

  #around(name: string): Zone | undefined {
    const id = this.#precedence.around(name);
    return id === undefined ? undefined : this.#zones.get(id);
  }

  async edit(zone: Zone, edit: ZoneEdit): Promise<Zone> {
    const key =
      "type" in edit && edit.type === "partial" ? { verificationKey: this.verificationKey(zone) } : {};
    return this.#change(zone, { ...edit, ...key });
  }

  async setSmartRouting(zone: Zone, value: "on" | "off"): Promise<Zone> {
    if (zone.smartRouting === value) return zone;
    return this.#change(zone, { smartRouting: value, smartRoutingModifiedOn: clock.now() });
  }

  async delete(zone: Zone): Promise<void> {
    await this.#storage.write(async (trx, changed) => {
      await store.remove(trx, zone.id);
      changed({ kind: "zone", id: zone.id });
    });
  }

  /** Checks whether a pending zone has been pointed here, and activates it if so. */
  async checkActivation(zone: Zone): Promise<Zone> {
    if (zone.status === "active" && this.governs(zone)) return zone;
    const { activation } = this.#options;
    const waitSeconds =
      zone.checkedOn === null
        ? 0
        : Math.ceil(activation.intervalSeconds - (clock.now() - zone.checkedOn) / 1000);
    if (waitSeconds > 0) throw zoneErrors.tooSoon(waitSeconds);
    // Inside another account's zone the authorization decides, because the DNS leads to this zone only once
    // it is active.
    const isPointedHere = !this.isContested(zone) && (await activation.check(zone));
    const claim = { zone, key: this.verificationKey(zone), isProved: false };
    const now = clock.now();
    try {
      return await this.#withProof(claim, (each) => this.#activate(each, isPointedHere, now));
    } catch (error) {
      if (!isUnproven(error)) throw error;
      return this.#change(zone, { checkedOn: now });
    }
  }

  /** Whether a zone is inside a zone of another account. */
  isContested({ name, accountId }: Zone): boolean {
    const outer = this.#around(name);
    return outer !== undefined && outer.accountId !== accountId;
  }

  async #activate(claim: Claim, isPointedHere: boolean, now: number): Promise<Zone> {
    return this.#storage.write(async (trx, changed) => {
      await lockZoneNames(this.#storage, trx);
      const current = await store.find(trx, claim.zone.id);
      if (current === undefined) return claim.zone;
      const related = await store.listRelated(trx, current.name);
      const authorizedBy = await authorityOf(trx, { ...claim, zone: current }, related);
      const isActive = isPointedHere || authorizedBy !== null;
      const activation =
        isActive && current.status !== "active" ? { status: "active" as const, activatedOn: now } : {};
      const checked: Zone = {
        ...current,
        ...activation,
        checkedOn: now,
        modifiedOn: now,
        authorizedBy: authorizedBy ?? current.authorizedBy,
      };
      await store.update(trx, checked);
      changed({ kind: "zone", id: current.id });
      return checked;
    });
  }

  /** Checks every inactive zone that is due. A timer calls it. */
  async checkPending(): Promise<void> {
    if (this.#isChecking) return;
    this.#isChecking = true;
    try {
      for (const zone of this.#zones.values()) {
        if (zone.status === "active") continue;
        if (this.#dueOn(zone) <= clock.now()) await this.checkActivation(zone);
      }
    } finally {
      this.#isChecking = false;
    }
  }

  /** The time of a zone's next check, in ms since 1970. */
  #dueOn(zone: Zone): number {
    const { intervalSeconds } = this.#options.activation;
    if (zone.checkedOn === null) return zone.createdOn + Math.min(intervalSeconds * 1000, firstCheckMs);
    const seconds = this.isContested(zone)
      ? Math.max(intervalSeconds, proofIntervalSeconds)
      : intervalSeconds;
    return zone.checkedOn + seconds * 1000;
  }

  /**
   * Call this when records of a zone change at these names. A zone inside it that these records no longer
   * authorize becomes inactive.
   */
  async reviewDelegations(zoneId: string, names: Iterable<string>): Promise<void> {
    const outer = this.#zones.get(zoneId);
    const ids = outer && this.#authorized.get(outer.name);
    if (outer === undefined || ids === undefined) return;
    const touched = [...names];
    for (const id of [...ids]) {
      const zone = this.#zones.get(id);
      if (zone === undefined) continue;
      const concerns = (name: string): boolean =>
        name === zone.name || isInside(zone.name, name) || name === verificationName(zone.name);
      if (touched.some(concerns)) await this.#review(outer, zone);
    }
  }

  async #review(outer: Zone, zone: Zone): Promise<void> {
    const key = this.verificationKey(zone);
    await this.#storage.write(async (trx, changed) => {
      await lockZoneNames(this.#storage, trx);
      const current = await store.find(trx, zone.id);
      if (current?.authorizedBy !== outer.name) return;
      if (await delegates(trx, outer, { zone: current, key, isProved: false })) return;
      const status = current.status === "active" ? "moved" : current.status;
      await store.update(trx, { ...current, status, authorizedBy: null, modifiedOn: clock.now() });
      changed({ kind: "zone", id: zone.id });
    });
  }

  async #change(zone: Zone, change: Partial<Zone>): Promise<Zone> {
    return this.#storage.write(async (trx, changed) => {
      await lockZone(this.#storage, trx, zone.id);
      const current = await store.find(trx, zone.id);
      if (current === undefined) throw zoneErrors.notFound(zone.id);
      const updated = { ...current, ...change, modifiedOn: clock.now() };
      await store.update(trx, updated);
      changed({ kind: "zone", id: zone.id });
      return updated;
    });
  }

  #set(id: string, zone: Zone | undefined): void {
    const authority = this.#zones.get(id)?.authorizedBy;
    if (authority != null) this.#authorized.get(authority)?.delete(id);
    if (zone === undefined) {
      this.#zones.delete(id);
      this.#precedence.delete(id);
    } else {
      this.#zones.set(id, zone);
      this.#precedence.set(zone);
      if (zone.authorizedBy !== null) this.#noteAuthority(zone.authorizedBy, id);
    }
    for (const listener of this.#listeners) listener(id, zone);
  }

  #noteAuthority(name: string, id: string): void {
    const ids = this.#authorized.get(name);
    if (ids === undefined) this.#authorized.set(name, new Set([id]));
    else ids.add(id);
  }

  /** Assigns one pair of name servers to each account, so that its owner needs only two names. */
  #assignNameServers(accountId: string): string[] {
    const names = [...this.#options.nameServers].sort();
    const first = createHash("sha256").update(accountId).digest().readUInt32BE() % names.length;
    const pair = names.length < 2 ? names : [names[first]!, names[(first + 1) % names.length]!];
    return pair.sort();
  }
}

/** Formats 64 bits of a keyed hash like Cloudflare's verification keys, such as "284344499-1084221259". */
export function verificationKeyOf(hash: string): string {
  return `${Number.parseInt(hash.slice(0, 8), 16)}-${Number.parseInt(hash.slice(8, 16), 16)}`;
}
