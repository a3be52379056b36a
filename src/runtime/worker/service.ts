import { env } from "cloudflare:workers";
import { currentRun, fetchThrough } from "../../cells/worker/run.ts";
import { carry } from "./carry.ts";
import type { BindingFetch } from "./env.ts";

interface Caller {
  call(run: string, binding: string, method: string, args: unknown[]): unknown;
}

/** A binding to another script of the account: its `fetch`, and the methods of its entrypoint. */
export function service(_call: BindingFetch, { name }: { name: string }): object {
  const stub = (env as Record<string, unknown>)[name] as Caller;
  const fetch = async (input: RequestInfo | URL, init?: RequestInit): Promise<Response> =>
    fetchThrough(name, input, init);
  return new Proxy(
    {},
    {
      get(_target, key) {
        if (key === "fetch") return fetch;
        // Whatever is awaited is asked whether it is a promise.
        if (typeof key !== "string" || key === "then") return undefined;
        return (...args: unknown[]) => {
          const run = currentRun();
          if (run === undefined) throw new Error("A service is called only while a request is handled.");
          return stub.call(run, name, key, carry(args) as unknown[]);
        };
      },
    },
  );
}
