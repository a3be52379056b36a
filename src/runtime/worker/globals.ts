import { waitUntil } from "cloudflare:workers";
import { currentRun, forRun } from "../../cells/worker/run.ts";

/*
 * What besides fetch speaks to the outside, or is spoken to from there: it does so for the run that it was made in. Only runs
 * may reach out, and what belongs to none is refused by the front.
 */
const NativeWebSocket = globalThis.WebSocket;
const { construct } = Reflect;

/** The front takes the run from the last of the protocols that are offered, and takes that one away. */
const ScriptWebSocket = new Proxy(NativeWebSocket, {
  construct(target, [url, protocols = []]: [string, (string | string[])?], made) {
    const run = currentRun();
    if (run === undefined) throw new Error("A WebSocket is opened only while a request is handled.");
    const offered = typeof protocols === "string" ? [protocols] : [...protocols];
    return construct(target, [url, [...offered, `x-selvedge-run.${run}`]], made) as WebSocket;
  },
});
define(globalThis, "WebSocket", ScriptWebSocket);
define(NativeWebSocket.prototype, "constructor", ScriptWebSocket);

type Listener = ((event: Event) => unknown) | { handleEvent(event: Event): unknown };
/** As they are registered with the socket, by what the script gave. */
const carried = new WeakMap<object, (event: Event) => unknown>();

function carry(listener: Listener): (event: Event) => unknown {
  const known = carried.get(listener);
  if (known !== undefined) return known;
  const run = currentRun();
  const call = (socket: unknown, event: Event): unknown =>
    typeof listener === "function" ? listener.call(socket, event) : listener.handleEvent(event);
  const made = function onEvent(this: unknown, event: Event): unknown {
    return run === undefined ? call(this, event) : forRun(run, () => call(this, event));
  };
  carried.set(listener, made);
  return made;
}

const { addEventListener, removeEventListener } = EventTarget.prototype;
define(
  NativeWebSocket.prototype,
  "addEventListener",
  function add(this: WebSocket, type: never, listener: Listener, options?: never) {
    addEventListener.call(this, type, carry(listener), options);
  },
);
define(
  NativeWebSocket.prototype,
  "removeEventListener",
  function remove(this: WebSocket, type: never, listener: Listener, options?: never) {
    removeEventListener.call(this, type, carried.get(listener) ?? listener, options);
  },
);
for (const name of ["onopen", "onmessage", "onclose", "onerror"]) {
  const handlers = new WeakMap<object, unknown>();
  Object.defineProperty(NativeWebSocket.prototype, name, {
    configurable: true,
    enumerable: true,
    get(this: WebSocket) {
      return handlers.get(this) ?? null;
    },
    set(this: WebSocket, handler: unknown) {
      handlers.set(this, typeof handler === "function" ? carry(handler as Listener) : handler);
    },
  });
}

// Scripts of early dates have neither of these.
const { EventSource: NativeEventSource } = globalThis as { EventSource?: new () => object };
if (NativeEventSource !== undefined)
  define(
    globalThis,
    "EventSource",
    new Proxy(NativeEventSource, {
      construct() {
        throw new Error(
          "new EventSource() is not supported here. Fetch the stream, and give its body to EventSource.from()",
        );
      },
    }),
  );
if ("navigator" in globalThis)
  define(navigator, "sendBeacon", function sendBeacon(url: string, body?: BodyInit): boolean {
    waitUntil(fetch(url, { method: "POST", ...(body === undefined ? {} : { body }) }).catch(() => {}));
    return true;
  });

function define(target: object, name: string, value: unknown): void {
  Object.defineProperty(target, name, { value, writable: true, configurable: true, enumerable: true });
}
