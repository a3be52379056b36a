import { waitUntil } from "cloudflare:workers";
import { currentRun, forRun } from "../../../sandbox/worker/run.ts";
import { cellHeaders } from "../../../sandbox/protocol.ts";

/* WebSockets and EventSources keep the run that they were created in. The gateway refuses requests without a run. */
const NativeWebSocket = globalThis.WebSocket;
const { construct } = Reflect;

/** The gateway reads the run from the last offered protocol, and removes that protocol. */
const ScriptWebSocket = new Proxy(NativeWebSocket, {
  construct(target, [url, protocols = []]: [string, (string | string[])?], made) {
    const run = currentRun();
    if (run === undefined) throw new Error("WebSockets can be opened only while handling a request.");
    const offered = typeof protocols === "string" ? [protocols] : [...protocols];
    return construct(target, [url, [...offered, `${cellHeaders.run}.${run}`]], made) as WebSocket;
  },
});
define(globalThis, "WebSocket", ScriptWebSocket);
define(NativeWebSocket.prototype, "constructor", ScriptWebSocket);

type Listener = ((event: Event) => unknown) | { handleEvent(event: Event): unknown };
/** The wrapped listeners, by the script's own function. */
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

// Scripts with early compatibility dates have neither.
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
