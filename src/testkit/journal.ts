import type { ControlClient } from "./control-client.ts";

/** A call of the management API. Secrets are `REDACTED`; bodies longer than 64 KiB are cut. */
export interface ApiCall {
  n: number;
  at: string;
  /** Null for a path without an operation. */
  operation: string | null;
  method: string;
  /** The canonical path, without the base. */
  path: string;
  query: Readonly<Record<string, string>>;
  headers: Readonly<Record<string, string>>;
  body: unknown;
  /** The id of the caller's token; null without a valid one. */
  token: string | null;
  status: number;
  response: unknown;
  ms: number;
  /** The id of the fault that was applied to the call. */
  fault?: string;
  /** The kinds and ids of its changes; empty if there were none. */
  changed: readonly string[];
}

/** Conditions on calls. A call must meet all that are given. */
export interface CallFilter {
  operation?: string;
  method?: string;
  path?: string;
  token?: string;
  status?: number;
  body?: object;
  changed?: boolean;
  /** Only later calls than the one with this number. */
  after?: number;
}

/** The latest 10,000 calls since the reset. */
export interface CallJournal {
  all(filter?: CallFilter): Promise<ApiCall[]>;
  /** Resolves with the first call that matches. Throws an Error if there is none after `ms`, 5,000 by default. */
  waitFor(filter: CallFilter, ms?: number): Promise<ApiCall>;
  /** Calls whose path belongs to no operation. */
  unknown(): Promise<ApiCall[]>;
  clear(): Promise<void>;
  /** The calls as an HTTP Archive. */
  har(): Promise<object>;
}

export function journalOf(control: ControlClient): CallJournal {
  const calls = async (path: string): Promise<ApiCall[]> =>
    (await control.json<{ calls: ApiCall[] }>("GET", path)).calls;
  return {
    all: async (filter = {}) => calls(`/calls?${queryOf(filter)}`),
    async waitFor(filter, ms = 5000) {
      const [first] = await calls(`/calls?${queryOf({ ...filter, wait: ms / 1000 })}`);
      if (first === undefined) throw new Error(`No call matched ${JSON.stringify(filter)} within ${ms} ms`);
      return first;
    },
    unknown: async () => calls("/calls/unknown"),
    clear: async () => control.json("DELETE", "/calls"),
    har: async () => control.json("GET", "/calls/har"),
  };
}

const queryOf = (filter: CallFilter & { wait?: number }): string =>
  new URLSearchParams(
    Object.entries(filter).map(([name, value]) => [
      name,
      typeof value === "object" ? JSON.stringify(value) : String(value),
    ]),
  ).toString();
