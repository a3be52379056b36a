import type { ListLookup, ListType } from "./comparison.ts";
import { Cursor } from "./cursor.ts";
import type { ListSource } from "./field-source.ts";
import { readIpRange } from "./ip-literal.ts";
import { IpSet } from "./ip-set.ts";
import { bytesOf, type IntValue } from "./types.ts";
import { BytesSet, IntSet } from "./value-sets.ts";

export type ListContents =
  | { type: "Ip"; items: readonly string[] }
  | { type: "Bytes"; items: readonly string[] }
  | { type: "Int"; items: readonly IntValue[] };

/**
 * Named lists: the contents for evaluation, and the lookup that the parser checks names with.
 * Items of an Ip list are addresses, ranges and networks as in `in {…}`; anything else throws.
 */
export function createLists(lists: Readonly<Record<string, ListContents>>): {
  source: ListSource;
  lookup: ListLookup;
} {
  const sets = new Map(Object.entries(lists).map(([name, contents]) => [name, setOf(contents)]));
  return {
    source: { has: (name, value) => sets.get(name)?.has(value as never) ?? false },
    lookup: (name): ListType | undefined => sets.get(name)?.of,
  };
}

function setOf(contents: ListContents): IpSet | BytesSet | IntSet {
  if (contents.type === "Bytes") return new BytesSet(contents.items.map(bytesOf));
  if (contents.type === "Int") return new IntSet(contents.items.map((item) => ({ first: item, last: item })));
  return new IpSet(
    contents.items.map((item) => {
      const cursor = new Cursor(item);
      const range = readIpRange(cursor);
      if (!cursor.ended) throw cursor.faultHere("unrecognised input");
      return range;
    }),
  );
}
