import { once } from "node:events";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import { Readable } from "node:stream";

export interface EdgeAddresses {
  http: string;
  /** Undefined without a listener for TLS. */
  https: string | undefined;
  /** Authorities of the edge's certificates, in PEM. */
  ca: string | undefined;
}

const bodyless = new Set([101, 204, 205, 304]);

/** Sends a request for any host to the edge, as a visitor whose DNS names the edge would. */
export async function edgeFetch(edges: EdgeAddresses, request: Request): Promise<Response> {
  const url = new URL(request.url);
  const isSecure = url.protocol === "https:";
  const edge = isSecure ? edges.https : edges.http;
  if (edge === undefined)
    throw new Error(`Expected an http URL but received ${url.href}: the edge has no TLS listener`);
  const { hostname, port } = new URL(edge);
  const outgoing = (isSecure ? httpsRequest : httpRequest)({
    host: hostname.replace(/^\[|\]$/g, ""),
    port,
    path: `${url.pathname}${url.search}`,
    method: request.method,
    headers: { ...Object.fromEntries(request.headers), host: url.host },
    signal: request.signal,
    agent: false,
    ...(isSecure ? { servername: url.hostname, ca: edges.ca } : {}),
  });
  if (request.body === null) outgoing.end();
  else
    Readable.fromWeb(request.body)
      .on("error", (error) => outgoing.destroy(error))
      .pipe(outgoing);
  const [incoming] = (await once(outgoing, "response")) as [IncomingMessage];
  const headers = new Headers();
  for (let i = 0; i < incoming.rawHeaders.length; i += 2)
    headers.append(incoming.rawHeaders[i]!, incoming.rawHeaders[i + 1]!);
  const status = incoming.statusCode!;
  if (bodyless.has(status)) incoming.resume();
  return new Response(bodyless.has(status) ? null : (Readable.toWeb(incoming) as ReadableStream), {
    status,
    statusText: incoming.statusMessage ?? "",
    headers,
  });
}
