import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface PassingProxy {
  /** The base URL of the API behind it. */
  baseUrl: string;
  /** "GET /path" of each call, and the moment at which it came. */
  calls: { call: string; atMs: number }[];
  /** Answers instead of the API if it returns true. `n` counts from 1. */
  instead: (call: string, n: number, response: ServerResponse) => boolean;
  close(): void;
}

/** Passes the calls of clients to an API, and records them. */
export async function passingProxy(api: string): Promise<PassingProxy> {
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const call = `${request.method} ${request.url}`;
    proxy.calls.push({ call, atMs: performance.now() });
    if (proxy.instead(call, proxy.calls.length, response)) return;
    const { authorization, "content-type": type } = request.headers;
    const body = request.method === "GET" ? undefined : Buffer.concat(await request.toArray());
    const passed = await fetch(`${api}${request.url}`, {
      method: request.method!,
      headers: { ...(authorization && { authorization }), ...(type && { "content-type": type }) },
      ...(body && body.length > 0 ? { body } : {}),
    });
    const headers = Object.fromEntries(
      ["content-type", "cf-entrypoint"].flatMap((name) => {
        const value = passed.headers.get(name);
        return value === null ? [] : [[name, value]];
      }),
    );
    response.writeHead(passed.status, headers).end(Buffer.from(await passed.arrayBuffer()));
  };
  const server = createServer((request, response) => {
    answer(request, response).catch(() => response.destroy());
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const proxy: PassingProxy = {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls: [],
    instead: () => false,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
  return proxy;
}
