import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { unawaited } from "../util/uncaught.ts";
import type { Health } from "./health.ts";

/** A server for `/healthz` and `/readyz` only, for probes that cannot reach the management API. */
export function createHealthServer(health: Health): Server {
  return createServer({ headersTimeout: 5000, keepAliveTimeout: 5000 }, (request, response) => {
    if (answerHealth(request, response, health)) return;
    response
      .writeHead(404, { "content-type": "application/json" })
      .end(JSON.stringify({ status: "not found" }));
  });
}

/** Answers `/healthz` and `/readyz`, and leaves other requests to the caller. */
export function answerHealth({ url }: IncomingMessage, response: ServerResponse, health: Health): boolean {
  if (url !== "/healthz" && url !== "/readyz") return false;
  unawaited(answer(response, url === "/readyz" ? health : undefined));
  return true;
}

async function answer(response: ServerResponse, health: Health | undefined): Promise<void> {
  const faults = (await health?.faults()) ?? [];
  const mode = health?.mode === undefined ? {} : { mode: health.mode };
  const body =
    faults.length === 0 ? { status: "ok", ...mode } : { status: "unavailable", not_ready: faults, ...mode };
  response.writeHead(faults.length === 0 ? 200 : 503, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}
