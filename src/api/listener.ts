import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { getRequestListener } from "@hono/node-server";
import type { Env, Hono } from "hono";
import { observeAnswer, type Observe } from "../observability/observation.ts";

export interface Health {
  /** What is not ready, by name; empty when everything is. */
  faults(): Promise<string[]>;
}

/** Answers a request, or leaves it. */
export type Pages = (request: IncomingMessage, response: ServerResponse) => boolean;

/** The HTTP server of the management API, with `/healthz` and `/readyz` beside it for those who watch over it. */
export function createApiServer<E extends Env>(
  app: Hono<E>,
  health: Health,
  observe?: Observe,
  pages?: Pages,
): Server {
  const listener = getRequestListener(app.fetch);
  const server = createServer(
    {
      requestTimeout: 30 * 60_000, // a hundred megabytes over a slow line
      headersTimeout: 30_000,
      keepAliveTimeout: 65_000,
      maxHeaderSize: 32 * 1024,
    },
    (request, response) => {
      if (request.url === "/healthz" || request.url === "/readyz") {
        void answerHealth(response, request.url === "/readyz" ? health : undefined);
      } else if (pages?.(request, response) !== true) {
        if (observe !== undefined) observeAnswer(response, request, observe);
        void listener(request, response);
      }
    },
  );
  return server;
}

async function answerHealth(response: ServerResponse, health: Health | undefined): Promise<void> {
  const faults = (await health?.faults()) ?? [];
  const body = faults.length === 0 ? { status: "ok" } : { status: "unavailable", not_ready: faults };
  response.writeHead(faults.length === 0 ? 200 : 503, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}

/** Listens, and answers with the address that was taken. */
export async function listen(server: Server, host: string, port: number): Promise<AddressInfo> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => {
      server.off("error", reject);
      resolve();
    });
  });
  return server.address() as AddressInfo;
}

/** Stops accepting, lets calls under way finish, and ends what remains after the deadline. */
export async function drain(server: Server, deadlineMs: number): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  server.closeIdleConnections();
  const timer = setTimeout(() => server.closeAllConnections(), deadlineMs);
  await closed;
  clearTimeout(timer);
}
