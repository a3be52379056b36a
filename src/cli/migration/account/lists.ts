import { MigrationError } from "../failure.ts";
import type { Client } from "./client.ts";

const pagesMax = 10_000;
const itemsMax = 500_000;

/** The objects of a list in a result; entries that are no objects are not kept. */
export function objectsIn(result: unknown): Record<string, unknown>[] {
  if (!Array.isArray(result)) return [];
  return result.filter((each) => typeof each === "object" && each !== null);
}

/** All items of a list that has pages by number. `items` finds the list in a result. */
export async function pagesOf(
  client: Client,
  path: string,
  perPage: number,
  items: (result: unknown) => Record<string, unknown>[] = objectsIn,
): Promise<Record<string, unknown>[]> {
  const all: Record<string, unknown>[] = [];
  const separator = path.includes("?") ? "&" : "?";
  for (let page = 1; page <= pagesMax; page++) {
    const { result, result_info } = await client.get(`${path}${separator}page=${page}&per_page=${perPage}`);
    const found = items(result);
    all.push(...found);
    check(path, all.length);
    const total = result_info["total_count"];
    const isLast = typeof total === "number" ? all.length >= total : found.length < perPage;
    if (found.length === 0 || isLast) return all;
  }
  throw new MigrationError(`${path} has more than ${pagesMax} pages`);
}

/** All items of a list that continues with a cursor, which `next` finds in the envelope. */
export async function cursorPagesOf(
  client: Client,
  path: string,
  parameter: string,
  next: (info: Record<string, unknown>, result: unknown) => unknown,
  items: (result: unknown) => Record<string, unknown>[] = objectsIn,
): Promise<Record<string, unknown>[]> {
  const all: Record<string, unknown>[] = [];
  const seen = new Set<string>();
  const separator = path.includes("?") ? "&" : "?";
  let from = "";
  for (;;) {
    const { result, result_info } = await client.get(`${path}${from}`);
    all.push(...items(result));
    check(path, all.length);
    const cursor = next(result_info, result);
    if (typeof cursor !== "string" || cursor === "") return all;
    if (seen.has(cursor)) throw new MigrationError(`${path} repeats its pages`);
    seen.add(cursor);
    from = `${separator}${parameter}=${encodeURIComponent(cursor)}`;
  }
}

function check(path: string, count: number): void {
  if (count > itemsMax) throw new MigrationError(`${path} has more than ${itemsMax} items`);
}
