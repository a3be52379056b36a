import { useEffect, useState } from "preact/hooks";

/** A value that components subscribe to. */
export interface Store<T> {
  get(): T;
  set(value: T): void;
  /** Returns a function that unsubscribes. */
  listen(listener: () => void): () => void;
}

export function store<T>(initial: T): Store<T> {
  let value = initial;
  const listeners = new Set<() => void>();
  return {
    get: () => value,
    set(next) {
      if (Object.is(next, value)) return;
      value = next;
      for (const listener of [...listeners]) listener();
    },
    listen(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

/** The value of a store. The component renders again when it changes. */
export function useStore<T>(followed: Store<T>): T {
  const [, setTurn] = useState(0);
  useEffect(() => followed.listen(() => setTurn((turn) => turn + 1)), [followed]);
  return followed.get();
}
