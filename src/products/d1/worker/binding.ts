import { env } from "cloudflare:workers";
import type { BindingFetch } from "../../../workers/runtime/worker/env.ts";

interface Client {
  prepare(sql: string): unknown;
  batch(statements: unknown[]): unknown;
  exec(sql: string): unknown;
  withSession(constraint?: string): unknown;
  dump(): unknown;
}
type ClientClass = new (fetcher: { fetch: (url: string, init?: RequestInit) => Promise<Response> }) => Client;

const origin = "http://d1";

/**
 * The D1 binding of a script: workerd's own client, so that its behaviour is the public one. Its requests go
 * through the platform's fetch, which tags each with its run.
 */
export function d1Database(call: BindingFetch, { name }: { name: string }): object {
  const template = (env as Record<string, object>)[name]!;
  const D1Database = template.constructor as ClientClass;
  const client = new D1Database({
    fetch: async (url, init) => call(url.startsWith(origin) ? url.slice(origin.length) : url, init),
  });
  return {
    prepare: (sql: string) => client.prepare(sql),
    batch: async (statements: unknown[]) => client.batch(statements),
    exec: async (sql: string) => client.exec(sql),
    withSession: (constraint?: string) => client.withSession(constraint),
    dump: async () => client.dump(),
  };
}
