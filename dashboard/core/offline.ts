import { whenAsked } from "./client.ts";
import { store } from "./store.ts";

/** Since when the server cannot be reached, in milliseconds; undefined while it can. */
export const offlineSince = store<number | undefined>(undefined);

const retryMs = 2000;
const waiting = new Set<() => void>();

/** Calls `again` once the server can be reached, after a call that did not reach it. Returns a function that gives it up. */
export function whenReachable(again: () => void): () => void {
  waiting.add(again);
  return () => waiting.delete(again);
}

function reached(): void {
  if (offlineSince.get() === undefined) return;
  offlineSince.set(undefined);
  const all = [...waiting];
  waiting.clear();
  for (const again of all) again();
}

/** The server is asked again and again until it answers. */
function unreached(): void {
  if (offlineSince.get() !== undefined) return;
  offlineSince.set(Date.now());
  const ask = (): void =>
    void fetch("/dashboard/session", { headers: { "x-selvedge-dashboard": "1" } }).then(reached, () =>
      setTimeout(ask, retryMs),
    );
  setTimeout(ask, retryMs);
}

whenAsked((isReached) => (isReached ? reached() : unreached()));
