// The globals that exist, and some that do not.
const names = [
  "caches",
  "Cache",
  "CacheStorage",
  "WebSocket",
  "WebSocketPair",
  "HTMLRewriter",
  "EventSource",
  "addEventListener",
  "removeEventListener",
  "dispatchEvent",
  "process",
  "Buffer",
  "global",
  "setImmediate",
  "clearImmediate",
  "require",
];

const attempt = (action) => {
  try {
    return typeof action();
  } catch (error) {
    return error.name;
  }
};

export default {
  async fetch(request, ...more) {
    const types = Object.fromEntries(names.map((name) => [name, typeof globalThis[name]]));
    const inherited = names.filter((name) => name in globalThis);
    return Response.json({
      types,
      inherited,
      // oxlint-disable-next-line no-eval -- that it is refused is what is shown
      eval: attempt(() => (0, eval)("1")),
      // oxlint-disable-next-line no-new-func, typescript/no-implied-eval -- the same
      function: attempt(() => new Function("return 1")()),
      upgrade: attempt(() => new Response(null, { status: 101 })),
      more: more.map((value) => typeof value === "object" && Object.keys(value ?? {}).length),
      node: attempt(() => process.getBuiltinModule("node:fs")),
      available: [
        setTimeout,
        fetch,
        Request,
        Response,
        URL,
        URLSearchParams,
        Headers,
        TextEncoder,
        TextDecoder,
      ].every((value) => typeof value === "function"),
      subtle: typeof crypto.subtle.digest,
      uuid: /^[\da-f-]{36}$/.test(crypto.randomUUID()),
    });
  },
};
