import type { Zone } from "../../control/zones/zone.ts";
import { isSameRecord, refuseConflicts } from "./conflicts.ts";
import { dnsErrors } from "./errors.ts";
import type { DnsRecord, RecordFields } from "./record.ts";

/**
 * A zone's records in memory during a change. Each operation is checked against the records then at its name,
 * so the draft must contain all records of the affected names. Nothing is written until the whole change has
 * succeeded.
 */
export class Draft {
  readonly #zone: Pick<Zone, "id" | "name">;
  readonly #makeId: () => string;
  readonly #nowMs: number;
  readonly #byId = new Map<string, DnsRecord>();
  readonly #byName = new Map<string, Map<string, DnsRecord>>();
  readonly #inserted = new Map<string, DnsRecord>();
  readonly #updated = new Map<string, DnsRecord>();
  readonly #deleted = new Set<string>();
  /** Names whose records have changed. */
  readonly touchedNames = new Set<string>();

  constructor(
    zone: Pick<Zone, "id" | "name">,
    records: Iterable<DnsRecord>,
    makeId: () => string,
    nowMs: number,
  ) {
    this.#zone = zone;
    this.#makeId = makeId;
    this.#nowMs = nowMs;
    for (const record of records) this.#index(record);
  }

  get inserted(): DnsRecord[] {
    return [...this.#inserted.values()];
  }
  get updated(): DnsRecord[] {
    return [...this.#updated.values()].filter(({ id }) => !this.#deleted.has(id));
  }
  get deletedIds(): string[] {
    return [...this.#deleted];
  }

  find(id: string): DnsRecord {
    const record = this.#byId.get(id);
    if (record === undefined) throw dnsErrors.notFound(id);
    return record;
  }

  atName(name: string): DnsRecord[] {
    return [...(this.#byName.get(name)?.values() ?? [])];
  }

  /** The records at a name, in the order of the store. */
  inOrder(name: string): DnsRecord[] {
    return this.atName(name).sort((a, b) => a.createdOn - b.createdOn || (a.id < b.id ? -1 : 1));
  }

  /** The record with the same type and value; its TTL and other attributes may differ. */
  findSame(fields: RecordFields): DnsRecord | undefined {
    return this.atName(fields.name).find((other) => isSameRecord(fields, other));
  }

  insert(fields: RecordFields): DnsRecord {
    refuseConflicts(fields, this.atName(fields.name), this.#zone.name);
    const record: DnsRecord = {
      ...fields,
      id: this.#makeId(),
      zoneId: this.#zone.id,
      createdOn: this.#nowMs,
      modifiedOn: this.#nowMs,
      commentModifiedOn: fields.comment === null ? null : this.#nowMs,
      tagsModifiedOn: fields.tags.length === 0 ? null : this.#nowMs,
    };
    this.#index(record);
    this.#inserted.set(record.id, record);
    this.touchedNames.add(record.name);
    return record;
  }

  /** Updates a record. If nothing changes, it keeps its times. */
  update(current: DnsRecord, fields: RecordFields): DnsRecord {
    const others = this.atName(fields.name).filter(({ id }) => id !== current.id);
    refuseConflicts(fields, others, this.#zone.name);
    if (isUnchanged(current, fields)) return current;
    const record: DnsRecord = {
      ...current,
      ...fields,
      // Increases with each change, also of two in one millisecond: it is the tag of the state.
      modifiedOn: Math.max(this.#nowMs, current.modifiedOn + 1),
      commentModifiedOn: changedOn(fields.comment, current.comment, current.commentModifiedOn, this.#nowMs),
      tagsModifiedOn: changedOn(
        fields.tags.join() || null,
        current.tags.join() || null,
        current.tagsModifiedOn,
        this.#nowMs,
      ),
    };
    this.#byName.get(current.name)?.delete(current.id);
    this.#index(record);
    this.#updated.set(record.id, record);
    this.touchedNames.add(current.name).add(record.name);
    return record;
  }

  delete(id: string): DnsRecord {
    const record = this.find(id);
    this.#byId.delete(id);
    this.#byName.get(record.name)?.delete(id);
    this.#deleted.add(id);
    this.touchedNames.add(record.name);
    return record;
  }

  #index(record: DnsRecord): void {
    this.#byId.set(record.id, record);
    const atName = this.#byName.get(record.name);
    if (atName === undefined) this.#byName.set(record.name, new Map([[record.id, record]]));
    else atName.set(record.id, record);
  }
}

const changedOn = (
  value: string | null,
  before: string | null,
  beforeOn: number | null,
  nowMs: number,
): number | null => (value === null ? null : value === before ? beforeOn : nowMs);

const isUnchanged = (current: DnsRecord, fields: RecordFields): boolean =>
  (Object.keys(fields) as (keyof RecordFields)[]).every(
    (key) => JSON.stringify(current[key]) === JSON.stringify(fields[key]),
  );
