import { useEffect, useState } from "preact/hooks";
import type { Rows } from "../core/pages.ts";
import type { Selection } from "./grid.tsx";

/** The rows that a person has chosen among those that are loaded, in the order of the choice. */
export interface Chosen<T> extends Selection<T> {
  keys: readonly string[];
  isFull: boolean;
  clear: () => void;
}

/** A choice of at most `max` rows, which is empty again when `of` changes. */
export function useChosen<T>(
  rows: Pick<Rows<T>, "count" | "row">,
  keyOf: (row: T) => string,
  { max, of }: { max: number; of: string },
): Chosen<T> {
  const [keys, setKeys] = useState<readonly string[]>([]);
  const clear = (): void => setKeys([]);
  useEffect(clear, [of]);
  const all = rows.count ?? 0;
  return {
    keys,
    isFull: keys.length >= max,
    clear,
    state: keys.length === 0 ? "none" : keys.length === all ? "all" : "some",
    has: (row) => keys.includes(keyOf(row)),
    toggle(row) {
      const key = keyOf(row);
      if (keys.includes(key)) setKeys(keys.filter((each) => each !== key));
      else if (keys.length < max) setKeys([...keys, key]);
    },
    toggleAll() {
      if (keys.length > 0) return clear();
      const loaded = Array.from({ length: Math.min(all, max) }, (_, index) => rows.row(index));
      setKeys(loaded.flatMap((row) => (row === undefined ? [] : [keyOf(row)])));
    },
  };
}
