import { env } from "cloudflare:workers";
import { fetchThrough } from "../../../sandbox/worker/run.ts";
import { bindingObject } from "./binding-object.ts";

/** Sends a request to the platform's side of a binding. Path and query belong to the binding. */
export type BindingFetch = (path: string, init?: RequestInit) => Promise<Response>;

/** Adds a binding to the `env` of handlers and of `cloudflare:workers`, which is the same object. */
export function bind<D extends { name: string }>(
  className: string,
  make: (call: BindingFetch, description: D) => object,
  description: D,
): void {
  const { name } = description;
  const call: BindingFetch = (path, init) => fetchThrough(name, `http://binding${path}`, init);
  (env as Record<string, unknown>)[name] = bindingObject(className, make(call, description));
}
