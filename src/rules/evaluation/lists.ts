import type { ListLookup, ListType } from "../syntax/comparison.ts";
import { Cursor } from "../syntax/cursor.ts";
import type { ListSource } from "../fields/field-source.ts";
import { readIpRange } from "../syntax/ip-literal.ts";
import { IpSet } from "../values/ip-set.ts";
import { encodeUtf8, type IntValue } from "../values/types.ts";
import { BytesSet, IntSet } from "../values/value-sets.ts";

export type ListContents =
  | { type: "Ip"; items: readonly string[] }
  | { type: "Bytes"; items: readonly string[] }
  | { type: "Int"; items: readonly IntValue[] };

/**
 * Named lists: their contents for evaluation, and a lookup of their types for the parser. Items of an Ip list
 * are addresses, ranges and networks as in `in {…}`. Throws for other items.
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
  if (contents.type === "Bytes") return new BytesSet(contents.items.map(encodeUtf8));
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
