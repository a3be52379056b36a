import { env } from "cloudflare:workers";
import { fetchThrough } from "../../cells/worker/run.ts";

/** Reaches the platform's side of a binding: path and query are the binding's own. */
export type BindingFetch = (path: string, init?: RequestInit) => Promise<Response>;

/** Puts a binding into the `env` that handlers get and that `cloudflare:workers` exports: they show the same. */
export function bind<D extends { name: string }>(
  name: string,
  make: (call: BindingFetch, description: D) => unknown,
  description: D,
): void {
  const call: BindingFetch = (path, init) => fetchThrough(name, `http://binding${path}`, init);
  (env as Record<string, unknown>)[name] = make(call, description);
}
