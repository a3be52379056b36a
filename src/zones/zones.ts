import { createHash } from "node:crypto";
import type { Storage } from "../storage/storage.ts";
import { isUniqueViolation } from "../storage/dialects.ts";
import { newId } from "../util/ids.ts";
import type { ActivationPolicy } from "./activation.ts";
import type { PlanName } from "./plans.ts";
import * as store from "./store.ts";
import { normalizeZoneName, zoneErrors, type Zone } from "./zone.ts";

export type ZoneEdit =
  | { paused: boolean }
  | { type: Zone["type"] }
  | { plan: PlanName }
  | { vanityNameServers: string[] };

export interface ZonesOptions {
  nameServers: readonly string[];
  defaultPlan: PlanName;
  activation: ActivationPolicy;
}

/** The zones of this installation. All of them are in memory: every call and every request at the edge asks for one. */
export class Zones {
  readonly #storage: Storage;
  readonly #options: ZonesOptions;
  readonly #zones = new Map<string, Zone>();
  readonly #listeners: ((id: string, zone: Zone | undefined) => void)[] = [];

  constructor(storage: Storage, options: ZonesOptions) {
    this.#storage = storage;
    this.#options = options;
    storage.onChange(async (changes) => {
      const ids = new Set(changes.flatMap((change) => (change.kind === "zone" ? [change.id] : [])));
      for (const id of ids) this.#set(id, await store.find(storage.read, id));
      if (changes.some((change) => change.kind === "account")) await this.load();
    });
  }

  async load(): Promise<void> {
    const zones = await store.loadAll(this.#storage.read);
    const ids = new Set(zones.map((zone) => zone.id));
    for (const id of this.#zones.keys()) if (!ids.has(id)) this.#set(id, undefined);
    for (const zone of zones) this.#set(zone.id, zone);
  }

  /** Calls `listener` for every zone that is made or changed, and with no zone for one that is gone. */
  onChange(listener: (id: string, zone: Zone | undefined) => void): void {
    this.#listeners.push(listener);
  }

  find(id: string): Zone | undefined {
    return this.#zones.get(id);
  }

  list(): Zone[] {
    return [...this.#zones.values()];
  }

  async create(input: { accountId: string; name: string; type: Zone["type"] }): Promise<Zone> {
    const now = Date.now();
    const id = newId();
    const name = normalizeZoneName(input.name);
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
      verificationKey: input.type === "partial" ? verificationKey(id) : null,
      smartRouting: "off",
      smartRoutingModifiedOn: null,
      serial: Math.floor(now / 1000),
      createdOn: now,
      modifiedOn: now,
      activatedOn: null,
      checkedOn: null,
    };
    try {
      await this.#storage.write(async (trx, changed) => {
        await store.insert(trx, zone);
        changed({ kind: "zone", id });
      });
    } catch (error) {
      throw isUniqueViolation(error) ? zoneErrors.exists(name) : error;
    }
    return zone;
  }

  async edit(zone: Zone, edit: ZoneEdit): Promise<Zone> {
    const key =
      "type" in edit && edit.type === "partial" ? { verificationKey: verificationKey(zone.id) } : {};
    return this.#save({ ...zone, ...edit, ...key });
  }

  async setSmartRouting(zone: Zone, value: "on" | "off"): Promise<Zone> {
    if (zone.smartRouting === value) return zone;
    return this.#save({ ...zone, smartRouting: value, smartRoutingModifiedOn: Date.now() });
  }

  async delete(zone: Zone): Promise<void> {
    await this.#storage.write(async (trx, changed) => {
      await store.remove(trx, zone.id);
      changed({ kind: "zone", id: zone.id });
    });
  }

  /** Looks whether a pending zone has been pointed here, and makes it active if so. */
  async checkActivation(zone: Zone): Promise<Zone> {
    if (zone.status === "active") return zone;
    const { activation } = this.#options;
    const waitSeconds =
      zone.checkedOn === null
        ? 0
        : Math.ceil(activation.intervalSeconds - (Date.now() - zone.checkedOn) / 1000);
    if (waitSeconds > 0) throw zoneErrors.tooSoon(waitSeconds);
    const now = Date.now();
    const isActive = await activation.check(zone);
    const current = this.#zones.get(zone.id);
    if (current === undefined || current.status === "active") return current ?? zone;
    return this.#save({
      ...current,
      checkedOn: now,
      ...(isActive ? { status: "active" as const, activatedOn: now } : {}),
    });
  }

  /** Checks every pending zone whose turn has come; called by a timer. */
  async checkPending(): Promise<void> {
    for (const zone of this.#zones.values()) {
      if (zone.status !== "pending") continue;
      const dueMs = (zone.checkedOn ?? 0) + this.#options.activation.intervalSeconds * 1000;
      if (dueMs <= Date.now()) await this.checkActivation(zone);
    }
  }

  async #save(zone: Zone): Promise<Zone> {
    const updated = { ...zone, modifiedOn: Date.now() };
    await this.#storage.write(async (trx, changed) => {
      await store.update(trx, updated);
      changed({ kind: "zone", id: zone.id });
    });
    return updated;
  }

  #set(id: string, zone: Zone | undefined): void {
    if (zone === undefined) this.#zones.delete(id);
    else this.#zones.set(id, zone);
    for (const listener of this.#listeners) listener(id, zone);
  }

  /** One pair for each account, so that its owner learns two names only. */
  #assignNameServers(accountId: string): string[] {
    const names = [...this.#options.nameServers].sort();
    const first = createHash("sha256").update(accountId).digest().readUInt32BE() % names.length;
    const pair = names.length < 2 ? names : [names[first]!, names[(first + 1) % names.length]!];
    return pair.sort();
  }
}

const verificationKey = (zoneId: string): string =>
  `${Number.parseInt(zoneId.slice(0, 8), 16)}-${Number.parseInt(zoneId.slice(8, 16), 16)}`;
