import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { getRequestListener } from "@hono/node-server";
import type { Hono } from "hono";
import type { Env } from "hono";

export interface Health {
  /** What is not ready, by name; empty when everything is. */
  faults(): Promise<string[]>;
}

/** The HTTP server of the management API, with `/healthz` and `/readyz` beside it for those who watch over it. */
export function createApiServer<E extends Env>(app: Hono<E>, health: Health): Server {
  const listener = getRequestListener(app.fetch, { overrideGlobalObjects: false });
  const server = createServer(
    { requestTimeout: 120_000, headersTimeout: 30_000, keepAliveTimeout: 65_000, maxHeaderSize: 32 * 1024 },
    (request, response) => {
      if (request.url === "/healthz" || request.url === "/readyz") {
        void answerHealth(request.url === "/readyz" ? health : undefined).then(({ status, body }) => {
          response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
        });
        return;
      }
      void listener(request, response);
    },
  );
  return server;
}

async function answerHealth(health: Health | undefined): Promise<{ status: number; body: object }> {
  const faults = (await health?.faults()) ?? [];
  return faults.length === 0
    ? { status: 200, body: { status: "ok" } }
    : { status: 503, body: { status: "unavailable", not_ready: faults } };
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
