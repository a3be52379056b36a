import type { ControlClient } from "./control-client.ts";

/** The part of the fitting calls, requests, questions, writes or runs that a fault hits; all by default. */
export interface FaultSelection {
  /** The n-th that fits, or from one to another. */
  calls?: number | [from: number, to: number];
  /** At most so often. */
  times?: number;
  /** From 0 to 1. The same ones are hit with the same seed. */
  probability?: number;
}

/** A fault of the management API. Of several that fit a call, the newest is tried first. */
export interface InjectedFault extends FaultSelection {
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

/** A fault of the servers that the edge and scripts ask over HTTP. */
export interface InjectedOriginFault extends FaultSelection {
  /** The host that the request names. */
  host?: string;
  /** The address of the connection. */
  address?: string;
  then:
    | "refuse"
    | "reset"
    /** Until the edge gives up; that is a second here. */
    | "hang"
    /** For connections whose certificate is verified. */
    | "tls-expired"
    | "tls-wrong-host"
    | { status: number }
    | { latencyMs: number; jitterMs?: number }
    | { bytesPerSecond: number }
    | { cutAfterBytes: number }
    /** The byte of the body, counted from 0, whose bits are inverted. */
    | { damageByte: number };
}

/** A fault of the name server. */
export interface InjectedDnsFault extends FaultSelection {
  name?: string;
  type?: string;
  then: "servfail" | "nxdomain" | "refused" | "drop" | "truncate" | { delayMs: number };
}

/** A fault of the resolver that the edge asks for addresses of origins; or the addresses that it answers. */
export interface InjectedResolverFault extends FaultSelection {
  name?: string;
  then: "nxdomain" | "servfail" | "timeout" | string[] | { delayMs: number };
}

/** A fault of writes to the database (`rows`), or of the bytes of images, assets and large values (`blobs`). */
export interface InjectedStorageFault extends FaultSelection {
  of?: "rows" | "blobs";
  then: "full" | "lost" | { delayMs: number };
}

/** A fault of the processes that run scripts. */
export interface InjectedCellFault extends FaultSelection {
  /** The name of the script. */
  script?: string;
  then: "crash" | "cpu" | "memory" | { startMs: number };
}

/** A fault that is in effect until it is removed. */
export interface FaultHandle extends AsyncDisposable {
  /** How often it has struck. */
  hits(): Promise<number>;
  remove(): Promise<void>;
}

/** Adds faults. Of several of one kind that fit, the newest is tried first. */
export interface FaultInjection {
  api(fault: InjectedFault): Promise<FaultHandle>;
  origin(fault: InjectedOriginFault): Promise<FaultHandle>;
  dns(fault: InjectedDnsFault): Promise<FaultHandle>;
  resolver(fault: InjectedResolverFault): Promise<FaultHandle>;
  storage(fault: InjectedStorageFault): Promise<FaultHandle>;
  cells(fault: InjectedCellFault): Promise<FaultHandle>;
  /** Removes all faults. */
  clear(): Promise<void>;
}

interface Listed {
  id: string;
  hits: number;
}

export function faultsOf(control: ControlClient): FaultInjection {
  const list = async (): Promise<Listed[]> =>
    (await control.json<{ faults: Listed[] }>("GET", "/faults")).faults;
  const adding =
    (kind: string) =>
    async (fault: object): Promise<FaultHandle> => {
      const { id } = await control.json<{ id: string }>("POST", "/faults", { kind, ...fault });
      const remove = async (): Promise<void> => {
        if ((await list()).some((each) => each.id === id)) await control.json("DELETE", `/faults/${id}`);
      };
      return {
        hits: async () => (await list()).find((each) => each.id === id)?.hits ?? 0,
        remove,
        [Symbol.asyncDispose]: remove,
      };
    };
  return {
    api: adding("api"),
    origin: adding("origin"),
    dns: adding("dns"),
    resolver: adding("resolver"),
    storage: adding("storage"),
    cells: adding("cells"),
    clear: async () => control.json("DELETE", "/faults"),
  };
}
