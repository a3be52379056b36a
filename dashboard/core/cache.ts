import { useLayoutEffect, useState } from "preact/hooks";
import {
  asFailure,
  get,
  type ApiResponse,
  type ApiFailure,
  type ApiMessage,
  type ResultInfo,
} from "./client.ts";
import { whenReachable } from "./offline.ts";

/** A resource as a screen sees it. `data` keeps the last answer while the resource is reloaded, or if that fails. */
export interface Query<T> {
  data: T | undefined;
  info: ResultInfo;
  /** Remarks of the API on the data, such as figures that are missing. */
  messages?: readonly ApiMessage[];
  /** The tag of the data's state, for If-Match. */
  etag?: string | undefined;
  failure: ApiFailure | undefined;
  isLoading: boolean;
  /** Time of the data, in milliseconds. */
  at: number;
  reload: () => void;
}

interface Entry {
  answer: ApiResponse<unknown> | undefined;
  failure: ApiFailure | undefined;
  at: number;
  loading: AbortController | undefined;
  readers: Set<() => void>;
}

const entries = new Map<string, Entry>();
const entriesMax = 300;
const freshMs = 5000;

function entryOf(path: string): Entry {
  let entry = entries.get(path);
  if (entry === undefined) {
    for (const [old, { readers }] of entries) {
      if (entries.size < entriesMax) break;
      if (readers.size === 0) entries.delete(old);
    }
    entries.set(
      path,
      (entry = { answer: undefined, failure: undefined, at: 0, loading: undefined, readers: new Set() }),
    );
  }
  return entry;
}

const notifyReaders = (entry: Entry): void => [...entry.readers].forEach((reader) => reader());

function load(path: string): void {
  const entry = entryOf(path);
  entry.loading?.abort();
  const controller = (entry.loading = new AbortController());
  const finish = (change: Partial<Entry>): void => {
    if (entry.loading !== controller) return;
    Object.assign(entry, { loading: undefined, ...change });
    notifyReaders(entry);
  };
  get(path, controller.signal).then(
    (answer) => {
      finish({ answer, failure: undefined, at: Date.now() });
    },
    (error: unknown) => {
      if (controller.signal.aborted) return;
      const failure = asFailure(error);
      if (failure.status === 0)
        whenReachable(() => {
          if (entry.readers.size > 0 && entry.loading === undefined) load(path);
        });
      finish({ failure });
    },
  );
  notifyReaders(entry);
}

/** Reloads resources below these paths that are on screen, and drops the others from the cache. */
export function invalidate(...prefixes: string[]): void {
  for (const [path, entry] of entries) {
    if (!prefixes.some((prefix) => path.startsWith(prefix))) continue;
    if (entry.readers.size > 0) load(path);
    else entries.delete(path);
  }
}

/** Clears the cache, because another person may be signed in now. */
export function forgetAll(): void {
  for (const { loading } of entries.values()) loading?.abort();
  entries.clear();
}

/**
 * Reads a resource by its path below /client/v4, and keeps it current while the component is mounted. No path: no call.
 * With `everyMs`, it is read again and again while the page is visible.
 */
export function useGet<T>(path: string | undefined, { everyMs }: { everyMs?: number } = {}): Query<T> {
  const [, setTurn] = useState(0);
  // Before the first paint, which would come first otherwise.
  useLayoutEffect(() => {
    if (path === undefined) return;
    const entry = entryOf(path);
    const reader = (): void => setTurn((turn) => turn + 1);
    entry.readers.add(reader);
    if (entry.loading === undefined && Date.now() - entry.at > freshMs) load(path);
    const timer =
      everyMs === undefined
        ? undefined
        : setInterval(() => {
            if (!document.hidden && entry.loading === undefined) load(path);
          }, everyMs);
    return () => {
      entry.readers.delete(reader);
      clearInterval(timer);
    };
  }, [path, everyMs]);
  const entry = path === undefined ? undefined : entries.get(path);
  return {
    data: entry?.answer?.result as T | undefined,
    info: entry?.answer?.info ?? {},
    etag: entry?.answer?.etag,
    failure: entry?.failure,
    isLoading:
      path !== undefined &&
      (entry === undefined || entry.loading !== undefined || (entry.at === 0 && entry.failure === undefined)),
    at: entry?.at ?? 0,
    reload: () => {
      if (path !== undefined) load(path);
    },
  };
}
