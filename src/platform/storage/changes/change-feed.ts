import type { ChangeListeners } from "./listeners.ts";

/** Tells the storage of an edge process what the main process has written. */
export interface ChangeFeed {
  /** Sets the listeners, which will hear of the changes. */
  tell(listeners: ChangeListeners): void;
  readonly lagSeconds: number;
  stop(): void;
}
