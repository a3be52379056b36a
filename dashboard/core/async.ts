import { useEffect, useState } from "preact/hooks";
import type { Query } from "./cache.ts";
import { asFailure, type ApiFailure } from "./client.ts";

interface State<T> {
  key: string | undefined;
  data: T | undefined;
  failure: ApiFailure | undefined;
  at: number;
}

/** Loads data that needs more than one GET of JSON: several calls, a POST, or bytes. Without a `key`, nothing is called. */
export function useAsync<T>(key: string | undefined, read: (signal: AbortSignal) => Promise<T>): Query<T> {
  const empty: State<T> = { key, data: undefined, failure: undefined, at: 0 };
  const [state, setState] = useState(empty);
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    if (key === undefined) return;
    const controller = new AbortController();
    read(controller.signal).then(
      (data) => {
        if (!controller.signal.aborted) setState({ key, data, failure: undefined, at: Date.now() });
      },
      (error: unknown) => {
        if (!controller.signal.aborted) setState({ ...empty, failure: asFailure(error), at: Date.now() });
      },
    );
    return () => controller.abort();
  }, [key, turn]);
  const { data, failure, at } = state.key === key ? state : empty;
  return {
    data,
    info: {},
    failure,
    isLoading: key !== undefined && at === 0,
    at,
    reload() {
      setState(empty);
      setTurn((each) => each + 1);
    },
  };
}
