import type { ControlClient } from "./control-client.ts";

/** Selects which of the matching calls, requests, questions, writes or runs a fault hits; all by default. */
export interface FaultSelection {
  /** The n-th match, or a range of matches, from 1. */
  calls?: number | [from: number, to: number];
  /** Maximum number of hits. */
  times?: number;
  /** The chance of each match to be hit, from 0 to 1. The same seed hits the same matches. */
  probability?: number;
}

/** A fault of the management API. Of several that match a call, the newest is tried first. */
export interface InjectedFault extends FaultSelection {
  /** The fault matches calls that meet all of these conditions; without conditions, all calls. */
  on?: {
    /** Ids of operations, as in openapi.json. Others are refused. */
    operation?: string | string[];
    method?: string;
    /** The whole path. */
    path?: string;
    token?: string;
    /** The id of a zone that the path names. */
    zone?: string;
    /** Fields that the body must have, with these values. */
    body?: object;
  };
  then: {
    status?: number;
    code?: number;
    message?: string;
    /** The Retry-After header, in seconds. */
    retryAfter?: number;
    delayMs?: number | [least: number, most: number];
    connection?: "reset" | "hang" | "cut-headers" | "cut-body";
    /** "after": the change is made, and its answer is replaced or lost. Default "before". */
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
    /** No answer, until the edge gives up after at most a second. */
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

/** A fault of the resolver that the edge asks for addresses of origins. A list gives the addresses to answer. */
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
  /** Number of matches that the fault has hit. */
  hits(): Promise<number>;
  remove(): Promise<void>;
}

/** Adds faults. Of several of one kind that match, the newest is tried first. */
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
