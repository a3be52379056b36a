import { useLayoutEffect, useState } from "preact/hooks";
import type { Query } from "./cache.ts";
import { asFailure, type ApiFailure } from "./client.ts";
import { whenReachable } from "./offline.ts";

interface State<T> {
  key: string | undefined;
  data: T | undefined;
  failure: ApiFailure | undefined;
  at: number;
  isLoading: boolean;
}

/**
 * Loads data that needs more than one GET of JSON: several calls, a POST, or bytes. Loaded data stays while it is
 * read again, and when that fails. Without a `key`, nothing is called.
 */
export function useAsync<T>(key: string | undefined, read: (signal: AbortSignal) => Promise<T>): Query<T> {
  const empty: State<T> = {
    key,
    data: undefined,
    failure: undefined,
    at: 0,
    isLoading: key !== undefined,
  };
  const [state, setState] = useState(empty);
  const [turn, setTurn] = useState(0);
  const reload = (): void => {
    setState((before) => ({ ...before, isLoading: true }));
    setTurn((each) => each + 1);
  };
  useLayoutEffect(() => {
    if (key === undefined) return;
    const controller = new AbortController();
    let giveUp: (() => void) | undefined;
    read(controller.signal).then(
      (data) => {
        if (!controller.signal.aborted) setState({ ...empty, data, at: Date.now(), isLoading: false });
      },
      (error: unknown) => {
        if (controller.signal.aborted) return;
        const failure = asFailure(error);
        setState((before) => ({ ...(before.key === key ? before : empty), failure, isLoading: false }));
        if (failure.status === 0) giveUp = whenReachable(reload);
      },
    );
    return () => {
      controller.abort();
      giveUp?.();
    };
  }, [key, turn]);
  const { data, failure, at, isLoading } = state.key === key ? state : empty;
  return { data, info: {}, failure, isLoading, at, reload };
}
