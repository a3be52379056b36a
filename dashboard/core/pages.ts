import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { ApiFailure, get, type ApiMessage } from "./client.ts";
import type { Query } from "./cache.ts";
import { whenReachable } from "./offline.ts";

/** Rows of a long list, of which only the pages on screen are read. */
export interface Rows<T> {
  /** Undefined until the first page is loaded. */
  count: number | undefined;
  /** Undefined while its page is not loaded. */
  row(index: number): T | undefined;
  /** Reads the pages of these rows. */
  show(from: number, to: number): void;
  /** The state of the first page, for <Loaded>. */
  first: Query<T[]>;
  /** Replaces a row after a change, without a call. */
  replace(index: number, row: T): void;
}

interface Held<T> {
  path: string;
  pages: Map<number, T[]>;
  /** The first page, which stays here when it is far from the rows on screen. */
  first: T[] | undefined;
  loading: Map<number, AbortController>;
  count: number | undefined;
  messages: readonly ApiMessage[];
  failure: ApiFailure | undefined;
  at: number;
}

const newHeld = <T>(path: string): Held<T> => ({
  path,
  pages: new Map(),
  first: undefined,
  loading: new Map(),
  count: undefined,
  messages: [],
  failure: undefined,
  at: 0,
});
const pagesMax = 20;

/**
 * Reads a list by pages. `path` may have a query; `page` and `per_page` are added. With `everyMs`, it is read again and
 * again while the page is visible.
 */
export function useRows<T>(path: string, perPage = 200, { everyMs }: { everyMs?: number } = {}): Rows<T> {
  const [, setTurn] = useState(0);
  const [version, setVersion] = useState(0);
  // The rows of the last query stay on screen until the first page of the next one is loaded.
  const shown = useRef<Held<T>>(newHeld(path));
  const held = useMemo(() => newHeld<T>(path), [path, perPage, version]);
  const turn = (): void => setTurn((each) => each + 1);

  const load = (page: number): void => {
    if (held.pages.has(page) || held.loading.has(page)) return;
    const controller = new AbortController();
    held.loading.set(page, controller);
    const joint = path.includes("?") ? "&" : "?";
    get<T[]>(`${path}${joint}page=${page}&per_page=${perPage}`, controller.signal)
      .then(
        ({ result, info, messages }) => {
          held.pages.set(page, result);
          if (page === 1) held.first = result;
          held.count = info.total_count ?? result.length;
          held.messages = messages;
          held.failure = undefined;
          held.at = Date.now();
          const farthest = [...held.pages.keys()].toSorted((a, b) => Math.abs(b - page) - Math.abs(a - page));
          if (held.pages.size > pagesMax) held.pages.delete(farthest[0]!);
          shown.current = held;
        },
        (error: unknown) => {
          if (error instanceof ApiFailure) held.failure = error;
        },
      )
      .finally(() => {
        held.loading.delete(page);
        turn();
      });
    turn();
  };
  useLayoutEffect(() => {
    load(1);
    return () => held.loading.forEach((controller) => controller.abort());
  }, [held]);

  const latest = useRef(held);
  latest.current = held;
  useEffect(() => {
    if (everyMs === undefined) return;
    const timer = setInterval(() => {
      // Otherwise a slower answer would never be seen.
      if (!document.hidden && latest.current.loading.size === 0) setVersion((each) => each + 1);
    }, everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);

  // If the same rows could not be read again, they stay.
  const isOther = held.failure !== undefined && shown.current.path !== path;
  const current = held.pages.size > 0 || isOther ? held : shown.current;
  useEffect(
    () => (held.failure?.status === 0 ? whenReachable(() => setVersion((each) => each + 1)) : undefined),
    [held.failure],
  );
  return {
    count: current.count,
    row: (index) => current.pages.get(Math.floor(index / perPage) + 1)?.[index % perPage],
    show(from, to) {
      if (current !== held) return;
      for (
        let page = Math.floor(from / perPage) + 1;
        page <= Math.floor(Math.max(from, to - 1) / perPage) + 1;
        page++
      )
        load(page);
    },
    replace(index, row) {
      const page = current.pages.get(Math.floor(index / perPage) + 1);
      if (page !== undefined) page[index % perPage] = row;
      turn();
    },
    first: {
      data: current.first,
      info: { ...(current.count !== undefined && { total_count: current.count }) },
      messages: current.messages,
      failure: held.failure,
      isLoading: held.loading.size > 0,
      at: current.at,
      reload: () => setVersion((each) => each + 1),
    },
  };
}

/** A list that is fully loaded, as rows of a grid. */
export const rowsOf = <T>(list: readonly T[]): Pick<Rows<T>, "count" | "row" | "show"> => ({
  count: list.length,
  row: (index) => list[index],
  show: () => {},
});
