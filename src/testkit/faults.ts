import type { ControlClient } from "./control-client.ts";

/** A fault of the management API. Of several that fit a call, the newest is tried first. */
export interface InjectedFault {
  /** The calls that it fits: those that meet all conditions. */
  on: {
    /** Ids of operations, as in openapi.json. */
    operation?: string | string[];
    method?: string;
    path?: string;
    token?: string;
    /** The id of a zone that the path names. */
    zone?: string;
    /** Fields of the body, and their values. */
    body?: object;
  };
  /** The n-th call that fits, or from one to another; all by default. */
  calls?: number | [from: number, to: number];
  /** At most so often. */
  times?: number;
  /** From 0 to 1. The same calls are hit with the same seed. */
  probability?: number;
  then: {
    status?: number;
    code?: number;
    message?: string;
    /** Seconds. */
    retryAfter?: number;
    delayMs?: number | [least: number, most: number];
    connection?: "reset" | "hang" | "cut-headers" | "cut-body";
    /** "after": the change is made, and its answer is lost. */
    when?: "before" | "after";
  };
}

/** A fault that is in effect until it is removed. */
export interface FaultHandle extends AsyncDisposable {
  /** The number of calls that it has hit. */
  hits(): Promise<number>;
  remove(): Promise<void>;
}

export interface FaultInjection {
  /** Adds a fault of the management API. */
  api(fault: InjectedFault): Promise<FaultHandle>;
  /** Removes all faults. */
  clear(): Promise<void>;
}

export function faultsOf(control: ControlClient): FaultInjection {
  return {
    async api(fault) {
      const { id } = await control.json<{ id: string }>("POST", "/faults", fault);
      const remove = async (): Promise<void> => {
        const { faults } = await control.json<{ faults: { id: string }[] }>("GET", "/faults");
        if (faults.some((each) => each.id === id)) await control.json("DELETE", `/faults/${id}`);
      };
      return {
        async hits() {
          const { faults } = await control.json<{ faults: { id: string; hits: number }[] }>("GET", "/faults");
          return faults.find((each) => each.id === id)?.hits ?? 0;
        },
        remove,
        [Symbol.asyncDispose]: remove,
      };
    },
    clear: async () => control.json("DELETE", "/faults"),
  };
}
