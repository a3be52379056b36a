import { store } from "./store.ts";

/** Since when the server cannot be reached, in milliseconds; undefined while it can. */
export const offlineSince = store<number | undefined>(undefined);
