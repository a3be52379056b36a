import { lockZone } from "../storage/dialects.ts";
import type { Change, Storage, Write } from "../storage/storage.ts";
import { newId } from "../util/ids.ts";
import { plans } from "../zones/plans.ts";
import { noteRecordChange } from "../zones/store.ts";
import type { Zone } from "../zones/zone.ts";
import { ApiError } from "../api/errors.ts";
import { isSameRecord, refuseConflicts } from "./conflicts.ts";
import { dnsErrors } from "./errors.ts";
import type { RecordFilter } from "./filter.ts";
import { parseRecord, type DnsRecord, type RecordFields, type RecordInput } from "./record.ts";
import * as store from "./store.ts";

export interface Batch {
  deletes: readonly { id: string }[];
  patches: readonly ({ id: string } & Partial<RecordInput>)[];
  puts: readonly ({ id: string } & RecordInput)[];
  posts: readonly RecordInput[];
}
export type BatchResult = { [K in keyof Batch]: DnsRecord[] };

/** The DNS records of zones. Every change of a zone's records is one transaction, and raises its serial once. */
export class DnsRecords {
  readonly #storage: Storage;

  constructor(storage: Storage) {
    this.#storage = storage;
  }

  async find(zone: Zone, id: string): Promise<DnsRecord> {
    const record = await store.find(this.#storage.read, zone.id, id);
    if (record === undefined) throw dnsErrors.notFound(id);
    return record;
  }

  async list(zone: Zone, filter: RecordFilter): Promise<{ records: DnsRecord[]; totalCount: number }> {
    return store.list(this.#storage.read, zone.id, filter);
  }

  async listAll(zone: Zone): Promise<DnsRecord[]> {
    return store.listOfZone(this.#storage.read, zone.id);
  }

  async count(zones: readonly Zone[]): Promise<number> {
    return store.count(
      this.#storage.read,
      zones.map((zone) => zone.id),
    );
  }

  async create(zone: Zone, input: RecordInput): Promise<DnsRecord> {
    const { posts } = await this.batch(zone, { deletes: [], patches: [], puts: [], posts: [input] });
    return posts[0]!;
  }

  async replace(zone: Zone, id: string, input: RecordInput): Promise<DnsRecord> {
    const { puts } = await this.batch(zone, {
      deletes: [],
      patches: [],
      puts: [{ ...input, id }],
      posts: [],
    });
    return puts[0]!;
  }

  async edit(zone: Zone, id: string, input: Partial<RecordInput>): Promise<DnsRecord> {
    const { patches } = await this.batch(zone, {
      deletes: [],
      patches: [{ ...input, id }],
      puts: [],
      posts: [],
    });
    return patches[0]!;
  }

  async delete(zone: Zone, id: string): Promise<void> {
    await this.batch(zone, { deletes: [{ id }], patches: [], puts: [], posts: [] });
  }

  /** Deletes, then patches, then puts, then posts, in one transaction; the first fault undoes everything. */
  async batch(zone: Zone, batch: Batch): Promise<BatchResult> {
    const plan = plans[zone.plan];
    return this.#storage.write(async (trx, changed) => {
      await lockZone(this.#storage, trx, zone.id);
      const editor = new ZoneEditor(trx, zone, changed);
      const result: BatchResult = { deletes: [], patches: [], puts: [], posts: [] };
      for (const { id } of batch.deletes) result.deletes.push(await editor.delete(id));
      for (const { id, ...input } of batch.patches) {
        const current = await editor.find(id);
        result.patches.push(
          await editor.update(current, parseRecord(merge(current, input), zone.name, plan)),
        );
      }
      for (const { id, ...input } of batch.puts) {
        result.puts.push(await editor.update(await editor.find(id), parseRecord(input, zone.name, plan)));
      }
      for (const input of batch.posts)
        result.posts.push(await editor.insert(parseRecord(input, zone.name, plan)));
      const count = await noteRecordChange(trx, zone.id, batch.posts.length - batch.deletes.length);
      if (batch.posts.length > 0 && count > plan.dnsRecordsMax) throw dnsErrors.quota(plan.dnsRecordsMax);
      return result;
    });
  }

  /** Adds records that come from a file; one that exists already is passed over. Returns how many were added. */
  async import(zone: Zone, entries: readonly { line: number; fields: RecordFields }[]): Promise<number> {
    const limit = plans[zone.plan].dnsRecordsMax;
    return this.#storage.write(async (trx, changed) => {
      await lockZone(this.#storage, trx, zone.id);
      const editor = new ZoneEditor(trx, zone, changed);
      let added = 0;
      for (const { line, fields } of entries) {
        try {
          if (!(await editor.exists(fields))) {
            await editor.insert(fields);
            added += 1;
          }
        } catch (error) {
          throw error instanceof ApiError ? dnsErrors.importFault(line, error.message) : error;
        }
      }
      if (added > 0 && (await noteRecordChange(trx, zone.id, added)) > limit) throw dnsErrors.quota(limit);
      return added;
    });
  }
}

/** Members that a client leaves out of a PATCH stay as they are; a new value replaces content and data together. */
function merge(current: DnsRecord, patch: Partial<RecordInput>): RecordInput {
  const hasValue = patch.content !== undefined || patch.data !== undefined;
  const isSameType = patch.type === undefined || patch.type === current.type;
  const value = hasValue
    ? { content: patch.content, data: patch.data }
    : isSameType
      ? { content: current.content, data: current.data ?? undefined }
      : {};
  const priority = patch.priority ?? (isSameType ? (current.priority ?? undefined) : undefined);
  const data =
    value.data !== undefined &&
    patch.priority !== undefined &&
    "priority" in value.data &&
    patch.data === undefined
      ? { ...value.data, priority: patch.priority }
      : value.data;
  return {
    type: patch.type ?? current.type,
    name: patch.name ?? current.name,
    content: value.content,
    data,
    priority,
    ttl: patch.ttl ?? current.ttl,
    proxied: patch.proxied ?? current.proxied,
    settings:
      patch.settings === undefined
        ? isSameType
          ? current.settings
          : {}
        : { ...current.settings, ...patch.settings },
    comment: patch.comment === undefined ? current.comment : patch.comment,
    tags: patch.tags ?? current.tags,
  };
}

/** Changes records inside one transaction, each checked against what then stands at its name. */
class ZoneEditor {
  readonly #trx: Write;
  readonly #zone: Zone;
  readonly #changed: (change: Change) => void;
  readonly #now = Date.now();

  constructor(trx: Write, zone: Zone, changed: (change: Change) => void) {
    this.#trx = trx;
    this.#zone = zone;
    this.#changed = changed;
  }

  async find(id: string): Promise<DnsRecord> {
    const record = await store.find(this.#trx, this.#zone.id, id);
    if (record === undefined) throw dnsErrors.notFound(id);
    return record;
  }

  async exists(fields: RecordFields): Promise<boolean> {
    return (await store.listAtName(this.#trx, this.#zone.id, fields.name)).some((other) =>
      isSameRecord(fields, other),
    );
  }

  async insert(fields: RecordFields): Promise<DnsRecord> {
    await this.#refuseConflicts(fields, undefined);
    const record: DnsRecord = {
      ...fields,
      id: newId(),
      zoneId: this.#zone.id,
      createdOn: this.#now,
      modifiedOn: this.#now,
      commentModifiedOn: fields.comment === null ? null : this.#now,
      tagsModifiedOn: fields.tags.length === 0 ? null : this.#now,
    };
    await store.insert(this.#trx, record);
    this.#note(record.name);
    return record;
  }

  async update(current: DnsRecord, fields: RecordFields): Promise<DnsRecord> {
    await this.#refuseConflicts(fields, current.id);
    const record: DnsRecord = {
      ...current,
      ...fields,
      modifiedOn: this.#now,
      commentModifiedOn: fields.comment === current.comment ? current.commentModifiedOn : this.#now,
      tagsModifiedOn: fields.tags.join() === current.tags.join() ? current.tagsModifiedOn : this.#now,
    };
    await store.update(this.#trx, record);
    this.#note(current.name);
    if (record.name !== current.name) this.#note(record.name);
    return record;
  }

  async delete(id: string): Promise<DnsRecord> {
    const record = await this.find(id);
    await store.remove(this.#trx, id);
    this.#note(record.name);
    return record;
  }

  async #refuseConflicts(fields: RecordFields, ownId: string | undefined): Promise<void> {
    const atName = await store.listAtName(this.#trx, this.#zone.id, fields.name);
    refuseConflicts(
      fields,
      atName.filter((other) => other.id !== ownId),
      this.#zone.name,
    );
  }

  /** A change is told by the name that it touches: that is what the edge and the name server look things up by. */
  #note(name: string): void {
    this.#changed({ kind: "dns_record", id: name, parentId: this.#zone.id });
  }
}
