import { useEffect, useLayoutEffect, useMemo, useState } from "preact/hooks";
import type { Query } from "./cache.ts";
import { ApiFailure, get, nextCursor } from "./client.ts";
import { whenReachable } from "./offline.ts";
import type { Rows } from "./pages.ts";

interface Held<T> {
  rows: T[];
  /** Undefined at the end of the list. */
  next: string | undefined;
  failure: ApiFailure | undefined;
  loading: AbortController | undefined;
  at: number;
}

/** Rows of a list without a total: the next page is read when the end of the last one comes into view. */
export interface CursorRows<T> extends Pick<Rows<T>, "row" | "show" | "first"> {
  count: number;
  hasMore: boolean;
}

/** Reads a list by a cursor. `path` has a query already. */
export function useCursorRows<T>(path: string): CursorRows<T> {
  const [, setTurn] = useState(0);
  const [version, setVersion] = useState(0);
  const held = useMemo<Held<T>>(
    () => ({ rows: [], next: "", failure: undefined, loading: undefined, at: 0 }),
    [path, version],
  );
  const load = (): void => {
    if (held.loading !== undefined || held.next === undefined || held.failure !== undefined) return;
    const controller = (held.loading = new AbortController());
    const query = held.next === "" ? "" : `&cursor=${encodeURIComponent(held.next)}`;
    get<T[]>(path + query, controller.signal)
      .then(
        ({ result, info }) => {
          held.rows.push(...result);
          held.next = nextCursor(info);
          held.at = Date.now();
        },
        (error: unknown) => {
          if (error instanceof ApiFailure) held.failure = error;
        },
      )
      .finally(() => {
        held.loading = undefined;
        setTurn((turn) => turn + 1);
      });
  };
  useLayoutEffect(() => {
    load();
    return () => held.loading?.abort();
  }, [held]);
  useEffect(
    () => (held.failure?.status === 0 ? whenReachable(() => setVersion((each) => each + 1)) : undefined),
    [held.failure],
  );
  return {
    count: held.rows.length,
    hasMore: held.next !== undefined,
    row: (index) => held.rows[index],
    show(_from, to) {
      if (to >= held.rows.length && held.rows.length > 0) load();
    },
    first: {
      data: held.at === 0 ? undefined : held.rows,
      info: {},
      failure: held.failure,
      isLoading: held.loading !== undefined || (held.at === 0 && held.failure === undefined),
      at: held.at,
      reload: () => setVersion((each) => each + 1),
    } satisfies Query<T[]>,
  };
}
