/*
 * The stubs of hosts that a run, or an object in all its runs, keeps in its isolate. A call through one takes one hop
 * less: it does not pass the system worker first. A stub gives no rights, because hosts check each call (objects.ts). It
 * belongs to the request or object that received it.
 */

// Saved before the script's code is loaded, because a script may replace them.
const { apply, getPrototypeOf } = Reflect;
const { getOwnPropertyDescriptor, hasOwn, prototype: anyObject } = Object;
const { get, set, delete: remove } = Map.prototype;
const NativeMap = Map;

/** The first calls of an object go through the system worker: most requests make no more. */
const callsBefore = 3;
const hostsMax = 100;
const callName = "selvedgeCall";

/** Native parts, saved with the first binding to objects: snippets have no WebSockets. */
let native:
  | { stubs: object | null; fetch: () => unknown; Pair: typeof WebSocketPair; readyState: () => unknown }
  | undefined;
/** Learns the class of native stubs from a binding, before the script's code runs. */
export function noteStub(stub: { fetch: unknown }): void {
  native ??= {
    stubs: getPrototypeOf(stub),
    fetch: stub.fetch as () => unknown,
    Pair: WebSocketPair,
    readyState: getOwnPropertyDescriptor(WebSocket.prototype, "readyState")!.get!,
  };
}

/** The ways to a host that is kept. */
export interface KeptHost {
  fetch(request: RequestInfo | URL, init: RequestInit): Promise<Response>;
  call(given: unknown): Promise<unknown>;
}
type Ask = () => Promise<object | null | undefined>;

interface Entry {
  calls: number;
  drops: number;
  host: KeptHost | undefined;
}

/** Number of orders to drop all stubs: a host that was ended cannot be called through its old stub. */
let drops = 0;
export const dropHosts = (): void => {
  drops++;
};

/** The hosts that a run or an object keeps. */
export class KeptHosts {
  #hosts = new NativeMap<string, Entry>();
  #probe: WebSocket | undefined;

  /** The host of an object if it is kept. `ask` requests its stub from the system worker. */
  of(key: string, ask: Ask): KeptHost | undefined {
    const entry = this.#entryOf(key);
    if (entry.host !== undefined) return this.#isHere() ? entry.host : undefined;
    if (++entry.calls === callsBefore) this.#keep(entry, ask).catch(() => {});
    return undefined;
  }

  /** Forgets a host after an error that does not come from the object: the host may have ended. */
  failed(key: string, error: unknown): void {
    if ((error as { remote?: unknown } | null | undefined)?.remote !== true)
      apply(remove, this.#hosts, [key]);
  }

  #entryOf(key: string): Entry {
    const known = apply(get, this.#hosts, [key]) as Entry | undefined;
    if (known !== undefined && known.drops === drops) return known;
    if (this.#hosts.size >= hostsMax) this.#hosts = new NativeMap();
    const entry: Entry = { calls: 0, drops, host: undefined };
    apply(set, this.#hosts, [key, entry]);
    return entry;
  }

  async #keep(entry: Entry, ask: Ask): Promise<void> {
    const stub = await ask();
    if (this.#probe === undefined) this.#probe = new native!.Pair()[0];
    else if (!this.#isHere()) return;
    if (stub !== null && stub !== undefined) entry.host = waysTo(stub);
  }

  /**
   * Whether the code runs for the request or object that the stubs belong to. The context of an asynchronous function can
   * be carried to another one, as queues of work do, where workerd refuses objects such as this one.
   */
  #isHere(): boolean {
    try {
      apply(native!.readyState, this.#probe, []);
      return true;
    } catch {
      return false;
    }
  }
}

/** Undefined if the script has put something where the native method is found: it would get the tokens of runs. */
function waysTo(stub: object): KeptHost | undefined {
  const { stubs, fetch } = native!;
  const isNative =
    stubs !== null &&
    getPrototypeOf(stub) === stubs &&
    getPrototypeOf(stubs) === anyObject &&
    !hasOwn(stub, callName) &&
    !hasOwn(stubs, callName) &&
    !hasOwn(anyObject, callName);
  if (!isNative) return undefined;
  const call = (stub as Record<string, unknown>)[callName] as () => unknown;
  return {
    fetch: (request, init) => apply(fetch, stub, [request, init]) as Promise<Response>,
    // Calls can be made on the result before it is there.
    call: (given) => apply(call, undefined, [given]) as Promise<unknown>,
  };
}
