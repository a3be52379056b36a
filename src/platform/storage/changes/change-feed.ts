import type { ChangeListeners } from "./listeners.ts";

/** Reports the main process's writes to the storage of an edge process. */
export interface ChangeFeed {
  /** Sets the listeners for changes. */
  subscribe(listeners: ChangeListeners): void;
  readonly lagSeconds: number;
  stop(): void;
}
