/* Removes globals that snippets do not have, from the global object and from its prototypes. */
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
    // Properties that cannot be deleted are set to undefined for good.
    if (Object.hasOwn(at, name) && !Reflect.deleteProperty(at, name))
      Object.defineProperty(at, name, { value: undefined, writable: false, configurable: false });
  }
  if (name in globalThis)
    Object.defineProperty(globalThis, name, { value: undefined, writable: false, configurable: false });
}
