import type { Change } from "../storage.ts";

/** Wraps each write, for the test kit. */
export interface WriteHooks {
  /** Runs the work of a transaction, which adds its changes. Throws if the writer may not write. */
  around<T>(work: () => Promise<T>, changes: readonly Change[]): Promise<T>;
  /** Runs work on the bare connection. Throws if the writer may not write. */
  direct<T>(work: () => T): T;
}

/** Hooks without effect. */
export const noWriteHooks: WriteHooks = {
  around: async (work) => work(),
  direct: (work) => work(),
};
