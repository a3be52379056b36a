import type { Plan } from "../zones/plans.ts";
import type { Zone } from "../zones/zone.ts";
import { isSameRecord, refuseConflicts } from "./conflicts.ts";
import { dnsErrors, inBatch } from "./errors.ts";
import { parseRecordName } from "./name.ts";
import { parseRecord, type DnsRecord, type RecordFields, type RecordInput } from "./record.ts";

export interface Batch {
  deletes: readonly { id: string }[];
  patches: readonly ({ id: string } & Partial<RecordInput>)[];
  puts: readonly ({ id: string } & RecordInput)[];
  posts: readonly RecordInput[];
}
export type BatchResult = { [K in keyof Batch]: DnsRecord[] };
export const emptyBatch: Batch = { deletes: [], patches: [], puts: [], posts: [] };

/**
 * A zone's records in memory while they are changed: every change is checked against what then stands at its name.
 * It must hold all records of the names that are touched; nothing is written before the whole change has succeeded.
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
  /** Names whose records are not what they were. */
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
    for (const record of records) this.#place(record);
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

  has(fields: RecordFields): boolean {
    return this.atName(fields.name).some((other) => isSameRecord(fields, other));
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
    this.#place(record);
    this.#inserted.set(record.id, record);
    this.touchedNames.add(record.name);
    return record;
  }

  /** A record that already is as it should be stays as it is, its times included. */
  update(current: DnsRecord, fields: RecordFields): DnsRecord {
    const others = this.atName(fields.name).filter(({ id }) => id !== current.id);
    refuseConflicts(fields, others, this.#zone.name);
    if (isUnchanged(current, fields)) return current;
    const record: DnsRecord = {
      ...current,
      ...fields,
      modifiedOn: this.#nowMs,
      commentModifiedOn: changedOn(fields.comment, current.comment, current.commentModifiedOn, this.#nowMs),
      tagsModifiedOn: changedOn(
        fields.tags.join() || null,
        current.tags.join() || null,
        current.tagsModifiedOn,
        this.#nowMs,
      ),
    };
    this.#byName.get(current.name)?.delete(current.id);
    this.#place(record);
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

  #place(record: DnsRecord): void {
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

/** Deletes, then patches, then puts, then posts; the first fault ends it, and names its operation. */
export function applyBatch(draft: Draft, batch: Batch, zoneName: string, plan: Plan): BatchResult {
  const parse = (input: RecordInput): RecordFields => parseRecord(input, zoneName, plan);
  return {
    deletes: each("deletes", batch.deletes, ({ id }) => draft.delete(id)),
    patches: each("patches", batch.patches, ({ id, ...patch }) => {
      const current = draft.find(id);
      return draft.update(current, parse(merge(current, patch)));
    }),
    puts: each("puts", batch.puts, ({ id, ...input }) => draft.update(draft.find(id), parse(input))),
    posts: each("posts", batch.posts, (input) => draft.insert(parse(input))),
  };
}

function each<T>(
  part: keyof Batch,
  operations: readonly T[],
  apply: (operation: T) => DnsRecord,
): DnsRecord[] {
  return operations.map((operation, index) => {
    try {
      return apply(operation);
    } catch (error) {
      throw inBatch(error, `${part}/${index}`);
    }
  });
}

/** Records with these ids, and all that share a name with them or have one of the names. */
export interface Needed {
  ids: readonly string[];
  names: readonly string[];
}

/** What a draft must hold before a batch can be applied to it; a name that is none is left for the batch to refuse. */
export function involved(batch: Batch, zoneName: string): Needed {
  const names = new Set<string>();
  for (const { name } of [...batch.patches, ...batch.puts, ...batch.posts]) {
    if (name === undefined) continue;
    try {
      names.add(parseRecordName(name, zoneName));
    } catch {
      continue;
    }
  }
  const ids = new Set([...batch.deletes, ...batch.patches, ...batch.puts].map(({ id }) => id));
  return { ids: [...ids], names: [...names] };
}

/** Members that a client leaves out of a patch stay as they are; a new value replaces content and data together. */
export function merge(current: DnsRecord, patch: Partial<RecordInput>): RecordInput {
  const isSameType = patch.type === undefined || patch.type.toUpperCase() === current.type;
  return {
    type: patch.type ?? current.type,
    name: patch.name ?? `${current.name}.`,
    ...mergeValue(current, patch, isSameType),
    ttl: patch.ttl ?? current.ttl,
    proxied: patch.proxied ?? current.proxied,
    settings: { ...(isSameType ? current.settings : {}), ...patch.settings },
    comment: patch.comment === undefined ? current.comment : patch.comment,
    tags: patch.tags ?? current.tags,
  };
}

function mergeValue(
  current: DnsRecord,
  patch: Partial<RecordInput>,
  isSameType: boolean,
): Pick<RecordInput, "content" | "data" | "priority"> {
  if (!isSameType) return { content: patch.content, data: patch.data, priority: patch.priority };
  const priority = patch.priority ?? current.priority ?? undefined;
  if (patch.data !== undefined) return { content: patch.content, data: patch.data, priority };
  if (patch.content !== undefined) {
    // "10 mail.example.com" brings its own.
    const isWhole = current.type === "MX" && /^\s*\d+\s/.test(patch.content);
    return { content: patch.content, priority: isWhole ? patch.priority : priority };
  }
  const { content, data } = current;
  if (data === null) return { content, priority };
  return { data: "priority" in data && current.priority !== null ? { ...data, priority } : data, priority };
}
