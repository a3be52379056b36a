/* Takes away what a snippet does not have: from the global object and from whatever it inherits from. */
const absent = [
  "addEventListener",
  "Cache",
  "caches",
  "CacheStorage",
  "dispatchEvent",
  "EventSource",
  "HTMLRewriter",
  "removeEventListener",
  "WebSocket",
  "WebSocketPair",
];
for (const name of absent) {
  for (let at: object | null = globalThis; at !== null; at = Object.getPrototypeOf(at) as object | null) {
    // Some cannot be deleted: those are made undefined, for good.
    if (Object.hasOwn(at, name) && !Reflect.deleteProperty(at, name))
      Object.defineProperty(at, name, { value: undefined, writable: false, configurable: false });
  }
  if (name in globalThis)
    Object.defineProperty(globalThis, name, { value: undefined, writable: false, configurable: false });
}
