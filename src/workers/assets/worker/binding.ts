import { connect } from "../../runtime/worker/binding-object.ts";

/* The binding of a script to its own static assets. */
type BindingFetch = (path: string, init?: RequestInit) => Promise<Response>;

/** The headers on which the choice of an answer depends. */
const passedHeaders = ["authorization", "if-none-match", "if-range", "range"];

export function assets(call: BindingFetch): object {
  return {
    async fetch(input: RequestInfo | URL, init?: RequestInit) {
      const request = new Request(input, init);
      const { host, pathname, search } = new URL(request.url);
      const headers = new Headers({ "x-asset-host": host });
      for (const name of passedHeaders) {
        const value = request.headers.get(name);
        if (value !== null) headers.set(name, value);
      }
      // Scripts can unpack gzip, in an answer that they read and in one that they pass on.
      if (/\bgzip\b/.test(request.headers.get("accept-encoding") ?? ""))
        headers.set("accept-encoding", "gzip");
      return call(pathname + search, { method: request.method, headers, redirect: "manual" });
    },
    connect,
  };
}
