import type { IncomingMessage, ServerResponse } from "node:http";
import { originError } from "../http/errors.ts";
import { traceHeader } from "../../platform/tracing/spans/tracer.ts";
import { originTrace } from "../origin/attempt-trace.ts";
import type { EdgeHandler } from "../request/handlers.ts";
import { neverConnected, type Origins } from "../origin/origins.ts";
import { forward } from "../origin/proxy.ts";
import { isRay } from "../request/ray.ts";
import { readTarget } from "./relay-token.ts";
import { pingAddress, relayHeaders, relayHost } from "./relays.ts";

const ownHeaders: ReadonlySet<string> = new Set([
  "host",
  "connection",
  "transfer-encoding",
  traceHeader,
  ...Object.values(relayHeaders),
]);

/** Concurrent requests of other nodes. Above this, a relay no longer helps them. */
const inFlightMax = 2000;

/** Forwards requests of other nodes directly to the origin, never through another relay. */
export function relayHandler(secret: string, origins: Origins, bodyBytesMax: number): EdgeHandler {
  let inFlight = 0;
  return async ({ request, response, host, path, ray, record, span }) => {
    if (host !== relayHost) return false;
    const target = readTarget(String(request.headers[relayHeaders.target] ?? ""), secret, Date.now());
    if (target === undefined) {
      refuse(response, 403, "unauthorized");
      return true;
    }
    if (target.address === pingAddress) {
      response.writeHead(204).end();
      return true;
    }
    if (inFlight >= inFlightMax) {
      refuse(response, 503, "unsent");
      return true;
    }
    const firstRay = request.headers["cf-ray"];
    if (record !== undefined && typeof firstRay === "string" && isRay(firstRay)) record.ray = firstRay;
    inFlight += 1;
    let isUnsent = true;
    try {
      const addresses = origins.choose([target.address], target.port);
      isUnsent = false;
      const headers = passedOn(request);
      const method = request.method ?? "GET";
      const { port, tls } = target;
      const trace = originTrace(span);
      const origin = {
        tenant: "",
        method,
        path,
        headers,
        addresses,
        port,
        tls,
        ray,
        record,
        trace,
        route: undefined,
      };
      await forward(request, response, origin, origins, bodyBytesMax);
    } catch (error) {
      if (response.headersSent) throw error;
      const visible = originError(error);
      refuse(
        response,
        502,
        isUnsent || neverConnected(visible.cause ?? visible) ? "unsent" : `origin ${visible.code}`,
      );
    } finally {
      inFlight -= 1;
    }
    return true;
  };
}

/** The headers of the first node, without those of the connection between nodes. */
function passedOn(request: IncomingMessage): string[] {
  const { rawHeaders } = request;
  const headers = ["host", String(request.headers[relayHeaders.host] ?? "")];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (!ownHeaders.has(rawHeaders[i]!.toLowerCase())) headers.push(rawHeaders[i]!, rawHeaders[i + 1]!);
  }
  return headers;
}

function refuse(response: ServerResponse, status: number, failure: string): void {
  response.writeHead(status, ["content-length", "0", relayHeaders.failure, failure]);
  response.end();
}
