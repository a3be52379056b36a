import { useLayoutEffect } from "preact/hooks";
import type { ApiFailure, ApiMessage } from "./client.ts";
import { store, useStore, type Store } from "./store.ts";

/** The errors of a failure that fields on screen show. One is there twice if two fields show it. */
const placed = new WeakMap<ApiFailure, Store<readonly ApiMessage[]>>();

function placedOf(failure: ApiFailure): Store<readonly ApiMessage[]> {
  const shown = placed.get(failure) ?? store<readonly ApiMessage[]>([]);
  placed.set(failure, shown);
  return shown;
}

function place(failure: ApiFailure, error: ApiMessage): () => void {
  const shown = placedOf(failure);
  shown.set([...shown.get(), error]);
  return () => shown.set(shown.get().toSpliced(shown.get().indexOf(error), 1));
}

/** The text of an error that the component shows. While it is on screen, the form does not show the error too. */
export function usePlaced(
  failure: ApiFailure | undefined,
  error: ApiMessage | undefined,
): string | undefined {
  useLayoutEffect(
    () => (failure === undefined || error === undefined ? undefined : place(failure, error)),
    [failure, error],
  );
  return error?.message;
}

/** The errors that no field on screen shows. */
export function useUnplaced(failure: ApiFailure): ApiMessage[] {
  const shown = useStore(placedOf(failure));
  return failure.errors.filter((error) => !shown.includes(error));
}
