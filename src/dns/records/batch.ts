import type { Plan } from "../../control/zones/plans.ts";
import type { Draft } from "./draft.ts";
import { inBatch } from "./errors.ts";
import { parseRecordName } from "./name.ts";
import { parseRecord, type DnsRecord, type RecordFields, type RecordInput } from "./record.ts";

export interface RecordBatch {
  deletes: readonly { id: string }[];
  patches: readonly ({ id: string } & Partial<RecordInput>)[];
  puts: readonly ({ id: string } & RecordInput)[];
  posts: readonly RecordInput[];
}
export type RecordBatchResult = { [K in keyof RecordBatch]: DnsRecord[] };
/** A batch that changes nothing, to be spread into others. */
export const emptyBatch: RecordBatch = { deletes: [], patches: [], puts: [], posts: [] };

/**
 * Applies deletes, then patches, then puts, then posts. Throws at the first error, which names its operation.
 */
export function applyBatch(
  draft: Draft,
  batch: RecordBatch,
  zoneName: string,
  plan: Plan,
): RecordBatchResult {
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
  part: keyof RecordBatch,
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

/** The records that a draft needs: those with these ids or names, and all others at the same names. */
export interface Needed {
  ids: readonly string[];
  names: readonly string[];
}

/**
 * The records that a draft needs for a batch. Invalid names are skipped, because applying the batch rejects
 * them.
 */
export function involved(batch: RecordBatch, zoneName: string): Needed {
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

/**
 * The record after a patch. Fields that the patch omits keep their values. A new value replaces content and
 * data together.
 */
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
    // "10 mail.example.com" includes the priority.
    const isWhole = current.type === "MX" && /^\s*\d+\s/.test(patch.content);
    return { content: patch.content, priority: isWhole ? patch.priority : priority };
  }
  const { content, data } = current;
  if (data === null) return { content, priority };
  return { data: "priority" in data && current.priority !== null ? { ...data, priority } : data, priority };
}
