import { lockZone } from "../../platform/storage/dialects.ts";
import type { Storage } from "../../platform/storage/storage.ts";
import { noteRecordChange } from "../../control/zones/store.ts";
import type { Zone } from "../../control/zones/zone.ts";
import { digestOf, keyTagOf, newKey } from "./key.ts";
import * as store from "./store-dnssec.ts";
import type { ZoneKey } from "../name-server/zone/configuration.ts";
import { dnssecErrors } from "./errors.ts";
import { clock } from "../../platform/timers/clock.ts";

/**
 * pending: signed, but the parent has no DS yet. active: signed, and the parent has the DS. pending-disabled:
 * still signed until the DS is gone from the parent and from caches, because validators rely on it. disabled:
 * not signed.
 */
export type SigningStatus = "pending" | "active" | "pending-disabled" | "disabled";

export interface SigningState {
  zoneId: string;
  status: SigningStatus;
  privateKey: string;
  publicKey: string;
  isMultiSigner: boolean;
  /** TTL in seconds of the parent's DS, as last seen. */
  dsTtl: number;
  /** When the parent was first seen without the DS, in status pending-disabled. */
  dsGoneOn: number | null;
  modifiedOn: number;
}

/** The DS records at a zone's parent. */
export interface ParentDs {
  ttl: number;
  records: readonly { keyTag: number; digest: string }[];
}
/**
 * Reads the DS records of a zone from its parent. Throws if the parent cannot be reached. Returns "follows"
 * where the parent counts as updated at once, as in a laboratory.
 */
export type AskParent = (zoneName: string) => Promise<ParentDs | "follows">;

const dsTtlDefault = 86_400;

/** The signing states and keys of zones. */
export class Dnssec {
  readonly #storage: Storage;
  readonly #intervalMs: number;
  #states = new Map<string, SigningState>();
  readonly #checkedMs = new Map<string, number>();

  constructor(storage: Storage, intervalSeconds: number) {
    this.#storage = storage;
    this.#intervalMs = intervalSeconds * 1000;
    storage.onChange(
      async (changes) => {
        for (const { kind, id } of changes) {
          if (kind !== "dnssec" && kind !== "zone") continue;
          if (kind === "zone" && !this.#states.has(id)) continue;
          const state = await store.find(storage.read, id);
          if (state !== undefined) this.#states.set(id, state);
          else {
            this.#states.delete(id);
            this.#checkedMs.delete(id);
          }
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
    const states = new Map(rows.map((state) => [state.zoneId, state]));
    return () => {
      this.#states = states;
      for (const zoneId of [...this.#checkedMs.keys()])
        if (!states.has(zoneId)) this.#checkedMs.delete(zoneId);
    };
  }

  find(zoneId: string): SigningState | undefined {
    return this.#states.get(zoneId);
  }

  /** The key that signs a zone; undefined if the zone is not signed. */
  keyOf(zoneId: string): ZoneKey | undefined {
    const state = this.#states.get(zoneId);
    if (state === undefined || state.status === "disabled") return undefined;
    const { privateKey, publicKey, isMultiSigner, status } = state;
    return {
      privateKey,
      publicKey,
      keyTag: keyTagOf(publicKey),
      isLeaving: status === "pending-disabled",
      isMultiSigner,
    };
  }

  async edit(
    zone: Zone,
    edit: { status?: "active" | "disabled" | undefined; isMultiSigner?: boolean | undefined },
  ): Promise<SigningState | undefined> {
    if (edit.status === "active" && zone.type !== "full") throw dnssecErrors.notFull(zone.name);
    const known = this.#states.get(zone.id);
    if (known === undefined && edit.status !== "active" && edit.isMultiSigner !== true) return undefined;
    const current = known ?? this.#newState(zone.id);
    const next: SigningState = {
      ...current,
      isMultiSigner: edit.isMultiSigner ?? current.isMultiSigner,
      ...(edit.status === undefined
        ? {}
        : { status: statusAfter(current.status, edit.status), dsGoneOn: null }),
    };
    if (known !== undefined && JSON.stringify(known) === JSON.stringify(next)) return known;
    return this.#save({ ...next, modifiedOn: clock.now() });
  }

  async delete(zone: Zone): Promise<void> {
    const state = this.#states.get(zone.id);
    if (state === undefined) return;
    if (state.status === "active" || state.status === "pending-disabled")
      throw dnssecErrors.stillSigned(zone.name);
    await this.#storage.write(async (trx, changed) => {
      await store.remove(trx, zone.id);
      await noteRecordChange(trx, zone.id, 0);
      changed({ kind: "dnssec", id: zone.id });
    });
  }

  /** Checks the parents of all zones whose status depends on the parent's DS. A timer calls it. */
  async checkParents(nameOf: (zoneId: string) => string | undefined, ask: AskParent): Promise<void> {
    for (const state of this.#states.values()) {
      const name = nameOf(state.zoneId);
      if ((state.status !== "pending" && state.status !== "pending-disabled") || name === undefined) continue;
      const next = await this.#check(state, name, ask, clock.now());
      if (next !== state) await this.#follow(state, { ...next, modifiedOn: clock.now() });
    }
  }

  /**
   * Stores the state after a check of the parent, unless the zone, its key or its status changed during the
   * check.
   */
  async #follow(before: SigningState, next: SigningState): Promise<void> {
    await this.#storage.write(async (trx, changed) => {
      await lockZone(this.#storage, trx, next.zoneId);
      const current = await store.find(trx, next.zoneId);
      if (current === undefined || JSON.stringify(current) !== JSON.stringify(before)) return;
      await store.save(trx, next);
      await noteRecordChange(trx, next.zoneId, 0);
      changed({ kind: "dnssec", id: next.zoneId });
    });
  }

  async #check(state: SigningState, name: string, ask: AskParent, nowMs: number): Promise<SigningState> {
    const checkedMs = this.#checkedMs.get(state.zoneId) ?? 0;
    if (nowMs - checkedMs < this.#intervalMs) return state;
    this.#checkedMs.set(state.zoneId, nowMs);
    try {
      return afterCheck(state, name, await ask(name), nowMs);
    } catch {
      return state; // no answer from the parent, so the state stays as it is
    }
  }

  #newState(zoneId: string): SigningState {
    return {
      zoneId,
      status: "disabled",
      ...newKey(),
      isMultiSigner: false,
      dsTtl: dsTtlDefault,
      dsGoneOn: null,
      modifiedOn: 0,
    };
  }

  async #save(state: SigningState): Promise<SigningState> {
    await this.#storage.write(async (trx, changed) => {
      await store.save(trx, state);
      await noteRecordChange(trx, state.zoneId, 0);
      changed({ kind: "dnssec", id: state.zoneId });
    });
    return state;
  }
}

/**
 * The status after a request to enable or disable signing. If the parent never had the DS, no validator
 * relies on it, so signing ends at once.
 */
function statusAfter(status: SigningStatus, wish: "active" | "disabled"): SigningStatus {
  if (wish === "active") {
    if (status === "disabled") return "pending";
    return status === "pending-disabled" ? "active" : status;
  }
  return status === "active" || status === "pending-disabled" ? "pending-disabled" : "disabled";
}

/** The state after a check of the parent; the same object if nothing changes. */
export function afterCheck(
  state: SigningState,
  zoneName: string,
  parent: ParentDs | "follows",
  nowMs: number,
): SigningState {
  if (parent === "follows") return { ...state, status: state.status === "pending" ? "active" : "disabled" };
  const digest = digestOf(zoneName, state.publicKey);
  const hasOurs = parent.records.some((each) => each.digest.toUpperCase() === digest);
  if (state.status === "pending") return hasOurs ? { ...state, status: "active", dsTtl: parent.ttl } : state;
  if (parent.records.length > 0) return state.dsGoneOn === null ? state : { ...state, dsGoneOn: null };
  if (state.dsGoneOn === null) return { ...state, dsGoneOn: nowMs };
  const isForgotten = nowMs - state.dsGoneOn >= state.dsTtl * 1000;
  return isForgotten ? { ...state, status: "disabled", dsGoneOn: null } : state;
}
