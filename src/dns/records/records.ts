import { lockZone } from "../../platform/storage/dialects.ts";
import type { Change, Storage, Write } from "../../platform/storage/storage.ts";
import { newId } from "../../platform/util/ids.ts";
import { plans, type Plan } from "../../control/zones/plans.ts";
import { find as findZone, noteRecordChange } from "../../control/zones/store.ts";
import type { Zone } from "../../control/zones/zone.ts";
import {
  applyBatch,
  emptyBatch,
  involved,
  merge,
  type RecordBatch,
  type RecordBatchResult,
  type Needed,
} from "./batch.ts";
import { Draft } from "./draft.ts";
import { dnsErrors, inFile } from "./errors.ts";
import type { RecordFilter } from "./filter.ts";
import { RecordChanges } from "./record-changes.ts";
import { parseRecord, type DnsRecord, type RecordInput } from "./record.ts";
import { messageOf, type ImportEntry, type Lines } from "./zone-file/import.ts";
import { byLine, planImport, type ImportPlan } from "./zone-file/import-plan.ts";
import * as store from "./store.ts";
import { clock } from "../../platform/timers/clock.ts";
import { inSlices, Slices } from "../../platform/timers/slices.ts";

/** Throws to refuse a change of a record in its current state. */
export type RecordCheck = (current: DnsRecord) => void;
const accepted: RecordCheck = () => {};

interface ImportOptions {
  /** Whether records that the zone has get what their lines say. Otherwise they stay as they are. */
  isUpdate?: boolean;
  /** Throws to refuse an import into the zone with its current serial. */
  check?: (serial: number) => void;
}

/** The serial of a zone as it is stored now; without one, it was deleted meanwhile. */
const serialIn = ({ serial }: Zone, stored: Zone | undefined): number => stored?.serial ?? serial;

/** The DNS records of zones. Every change is one transaction and raises the zone's serial once. */
export class DnsRecords {
  readonly changes: RecordChanges;
  readonly #storage: Storage;

  constructor(storage: Storage) {
    this.#storage = storage;
    this.changes = new RecordChanges(storage);
  }

  async find(zone: Zone, id: string): Promise<DnsRecord> {
    const record = await store.find(this.#storage.read, zone.id, id);
    if (record === undefined) throw dnsErrors.notFound(id);
    return record;
  }

  async list(zone: Zone, filter: RecordFilter): Promise<{ records: DnsRecord[]; totalCount: number }> {
    return store.list(this.#storage.read, this.#storage.engine, zone.id, filter);
  }

  /** The current zone with its serial, and all of its records, sorted by name. */
  async export(zone: Zone): Promise<{ zone: Zone; records: DnsRecord[] }> {
    const [current, records] = await Promise.all([
      findZone(this.#storage.read, zone.id),
      store.listOfZone(this.#storage.read, zone.id),
    ]);
    return { zone: current ?? zone, records };
  }

  async serialOf(zone: Zone): Promise<number> {
    return serialIn(zone, await findZone(this.#storage.read, zone.id));
  }

  async count(zone: Zone): Promise<number> {
    return store.count(this.#storage.read, zone.id);
  }

  async countOfAccount(accountId: string): Promise<number> {
    return store.countOfAccount(this.#storage.read, accountId);
  }

  async create(zone: Zone, input: RecordInput): Promise<DnsRecord> {
    const fields = parseRecord(input, zone.name, plans[zone.plan]);
    return this.#change(zone, { ids: [], names: [fields.name] }, (draft) => draft.insert(fields));
  }

  /** Replaces a record. `check` may refuse the record before the change, in the same transaction. */
  async replace(
    zone: Zone,
    id: string,
    input: RecordInput,
    check: RecordCheck = accepted,
  ): Promise<DnsRecord> {
    const fields = parseRecord(input, zone.name, plans[zone.plan]);
    const needed = { ids: [id], names: [fields.name] };
    return this.#change(zone, needed, (draft) => {
      const current = draft.find(id);
      check(current);
      return draft.update(current, fields);
    });
  }

  async edit(
    zone: Zone,
    id: string,
    patch: Partial<RecordInput>,
    check: RecordCheck = accepted,
  ): Promise<DnsRecord> {
    const needed = involved({ ...emptyBatch, patches: [{ ...patch, id }] }, zone.name);
    return this.#change(zone, needed, (draft, plan) => {
      const current = draft.find(id);
      check(current);
      return draft.update(current, parseRecord(merge(current, patch), zone.name, plan));
    });
  }

  async delete(zone: Zone, id: string, check: RecordCheck = accepted): Promise<void> {
    await this.#change(zone, { ids: [id], names: [] }, (draft) => {
      check(draft.find(id));
      draft.delete(id);
    });
  }

  /**
   * Applies deletes, then patches, then puts, then posts, in one transaction. The first error rolls
   * everything back.
   */
  async batch(zone: Zone, batch: RecordBatch): Promise<RecordBatchResult> {
    return this.#change(zone, involved(batch, zone.name), (draft, plan) =>
      applyBatch(draft, batch, zone.name, plan),
    );
  }

  /** Imports all lines of a file, or none of them: the first one that is refused rolls everything back. */
  async import(
    zone: Zone,
    entries: readonly ImportEntry[],
    { isUpdate = false, check = () => {} }: ImportOptions = {},
  ): Promise<ImportPlan> {
    const refuse = (error: unknown, line: number): never => {
      throw inFile(error, line);
    };
    return this.#change(zone, "all", async (draft, _plan, trx) => {
      check(serialIn(zone, await findZone(trx, zone.id)));
      return inSlices(planImport(draft, entries, { isUpdate, refuse }));
    });
  }

  /** The effect that an import of these lines would have at the zone's serial. Changes nothing. */
  async planImport(
    zone: Zone,
    { entries, refused, skipped }: Lines,
    { isUpdate = false, check = () => {} }: ImportOptions = {},
  ): Promise<ImportPlan & { serial: number }> {
    // Before the records: a change between them makes the serial wrong, not the effect.
    const serial = await this.serialOf(zone);
    check(serial);
    const records = await store.listOfZone(this.#storage.read, zone.id);
    const draft = new Draft(zone, records, newId, clock.now());
    const refuse = messageOf;
    const plan = await inSlices(planImport(draft, entries, { isUpdate, refuse }));
    const { dnsRecordsMax } = plans[zone.plan];
    for (const { line } of plan.added.splice(Math.max(0, dnsRecordsMax - records.length)))
      plan.refused.push({ line, message: `The zone's plan allows ${dnsRecordsMax} records` });
    return {
      ...plan,
      refused: [...refused, ...plan.refused].sort(byLine),
      skipped: [...skipped, ...plan.skipped].sort(byLine),
      serial,
    };
  }

  /** Runs `work` on a draft with the needed records, and writes its changes. */
  async #change<T>(
    zone: Zone,
    needed: Needed | "all",
    work: (draft: Draft, plan: Plan, trx: Write) => T | Promise<T>,
  ): Promise<T> {
    const plan = plans[zone.plan];
    return this.#storage.write(async (trx, changed) => {
      await lockZone(this.#storage, trx, zone.id);
      const records =
        needed === "all"
          ? await store.listOfZone(trx, zone.id)
          : await store.listInvolved(trx, zone.id, needed.ids, needed.names);
      const draft = new Draft(zone, records, newId, clock.now());
      const result = await work(draft, plan, trx);
      if (draft.touchedNames.size === 0) return result;

      const { inserted, updated, deletedIds } = draft;
      const { count, serial } = await noteRecordChange(trx, zone.id, inserted.length - deletedIds.length);
      if (inserted.length > 0 && count > plan.dnsRecordsMax) throw dnsErrors.quota(plan.dnsRecordsMax, count);
      await store.remove(trx, deletedIds);
      const slices = new Slices();
      for (const record of updated) {
        await store.update(trx, record);
        await slices.rest();
      }
      await store.insert(trx, inserted);
      // Notices of changes have names instead of record ids, because the edge and the name server look
      // records up by name.
      for (const name of draft.touchedNames) {
        const change: Change = { kind: "dns_record", id: name, parentId: zone.id };
        changed(change);
        this.changes.note(change, draft.inOrder(name));
        if (slices.isOver) await slices.rest();
      }
      changed({ kind: "dns_serial", id: String(serial), parentId: zone.id });
      return result;
    });
  }
}
