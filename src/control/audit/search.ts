import { setImmediate as others } from "node:timers/promises";
import { inputErrors } from "../../platform/domain-error.ts";
import { isoTime } from "../../platform/util/ids.ts";
import type { Read } from "../../platform/storage/storage.ts";
import { timeOfEntry } from "./entry-id.ts";
import * as store from "./store.ts";

/*
 * Filters have no indexes, because every change would pay for maintaining them. A filter examines the account's entries
 * in steps, between which other work runs, and up to a limit.
 */

export interface SearchLimits {
  /** Entries that are examined at once. */
  step: number;
  /** Entries that one call examines. */
  max: number;
}

/** Entries that are counted at once. */
const countedAtOnce = 20_000;

export const searchLimits: SearchLimits = { step: 2000, max: 200_000 };

/** Ids are the key of the table. */
const isFiltered = ({ has, not }: store.Search): boolean =>
  has.id === undefined && (Object.keys(has).length > 0 || Object.keys(not).length > 0);

/** Splits a search into steps, in its direction. The final step has no `to`. At the limit, the steps end without it. */
async function* parts(
  read: Read,
  search: store.Search,
  { step, max }: SearchLimits,
): AsyncGenerator<store.Search> {
  let { after } = search;
  for (let examined = 0; examined < max; examined += step) {
    if (examined > 0) await others();
    const to = await store.idAt(read, { ...search, after }, step);
    yield { ...search, after, to };
    if (to === undefined) return;
    after = to;
  }
}

/** The first entries of a search, and the entry after which it continues; undefined at the end. */
export async function first(
  read: Read,
  search: store.Search,
  limit: number,
  limits = searchLimits,
): Promise<{ rows: store.AuditEntry[]; after: string | undefined }> {
  const rows: store.AuditEntry[] = [];
  // One entry more than requested shows whether there is a next page.
  const wanted = limit + 1;
  let last: string | undefined;
  for await (const part of isFiltered(search) ? parts(read, search, limits) : [search]) {
    rows.push(...(await store.list(read, part, { limit: wanted - rows.length })));
    if (rows.length === wanted) return { rows: rows.slice(0, limit), after: rows[limit - 1]!.id };
    last = part.to;
  }
  if (last === undefined) return { rows, after: undefined };
  if (rows.length === 0) throw tooMany(search, last, limits);
  return { rows, after: last };
}

/** A page of a search, and the number of all its entries. */
export async function page(
  read: Read,
  search: store.Search,
  { limit, offset }: { limit: number; offset: number },
  limits = searchLimits,
): Promise<{ rows: store.AuditEntry[]; count: number }> {
  if (!isFiltered(search))
    return {
      rows: await store.list(read, search, { limit, offset }),
      count: await countAll(read, search),
    };
  const rows: store.AuditEntry[] = [];
  let count = 0;
  let last: string | undefined;
  for await (const part of parts(read, search, limits)) {
    const here = await store.count(read, part);
    const skipped = Math.max(0, offset - count);
    if (here > skipped && rows.length < limit)
      rows.push(...(await store.list(read, part, { limit: limit - rows.length, offset: skipped })));
    count += here;
    last = part.to;
  }
  if (last !== undefined) throw tooMany(search, last, limits);
  return { rows, count };
}

/** Counts in steps without a filter, which only read an index. */
async function countAll(read: Read, search: store.Search): Promise<number> {
  let count = 0;
  for (let { after } = search; ;) {
    const to = await store.idAt(read, { ...search, after }, countedAtOnce);
    if (to === undefined) return count + (await store.count(read, { ...search, after }));
    count += countedAtOnce;
    after = to;
    await others();
  }
}

/** Different addresses of actors, at most `limit`. */
export async function addresses(
  read: Read,
  search: store.Search,
  limit: number,
  limits = searchLimits,
): Promise<string[]> {
  const found = new Set<string>();
  let last: string | undefined;
  for await (const part of parts(read, search, limits)) {
    for (const address of await store.addresses(read, part, limit)) found.add(address);
    last = part.to;
    if (found.size >= limit) break;
  }
  if (last !== undefined && found.size < limit) throw tooMany(search, last, limits);
  return [...found].slice(0, limit);
}

function tooMany({ direction }: store.Search, last: string, { max }: SearchLimits): Error {
  const timeMs = timeOfEntry(last);
  const limit = direction === "asc" ? `before=${isoTime(timeMs)}` : `since=${isoTime(timeMs + 1)}`;
  return inputErrors.invalid(
    `Expected since and before with at most ${max} entries between them for these filters, such as ${limit}`,
    direction === "asc" ? "/query/before" : "/query/since",
  );
}
