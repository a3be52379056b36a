/*
 * Collects large binary messages of WebSockets. V8 does not count their memory: a script that had received 1.2 GB of them,
 * and kept none, ended its cell. V8 looks for garbage only when objects of its own grow old, so some are made.
 */
const { accept } = WebSocket.prototype;
const { addEventListener } = EventTarget.prototype;
const { apply, getOwnPropertyDescriptor: descriptorOf } = Reflect;
const byteLength = descriptorOf(ArrayBuffer.prototype, "byteLength")!.get!;
const isBlob = Function.prototype[Symbol.hasInstance].bind(Blob);

/** Smaller messages make enough objects of their own. */
const largeBytes = 16 * 1024;
const bytesPerCollection = 32 * 1024 * 1024;
/** Objects of 176 bytes each: with fewer than 30 MB of them V8 does not begin. */
const oldObjects = 200_000;

let bytes = 0;

/** Counts a message, and triggers a collection after each 32 MiB. */
export function collectMessages(data: unknown): void {
  if (typeof data !== "object" || data === null) return; // V8 counts texts
  const size = bytesOf(data);
  if (size < largeBytes) return;
  bytes += size;
  if (bytes < bytesPerCollection) return;
  bytes = 0;
  let last: unknown;
  for (let i = 0; i < oldObjects; i++) last = [last, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
}

function bytesOf(data: object): number {
  try {
    return isBlob(data) ? (data as Blob).size : (apply(byteLength, data, []) as number);
  } catch {
    return 0; // a value of the script's own
  }
}

const onMessage = (event: MessageEvent): void => {
  collectMessages(event.data);
};

const wrapped = {
  accept(this: WebSocket, ...options: unknown[]): void {
    apply(accept, this, options);
    apply(addEventListener, this, ["message", onMessage]);
  },
};
Object.defineProperty(WebSocket.prototype, "accept", {
  ...descriptorOf(WebSocket.prototype, "accept"),
  value: wrapped.accept,
});
