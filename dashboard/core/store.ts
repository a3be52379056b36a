import { useLayoutEffect, useState } from "preact/hooks";

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
  const value = followed.get();
  useLayoutEffect(() => {
    const renderAgain = (): void => setTurn((turn) => turn + 1);
    // The layout effects of other components, which run before this one, may have changed it.
    if (!Object.is(followed.get(), value)) renderAgain();
    return followed.listen(renderAgain);
  }, [followed]);
  return value;
}
