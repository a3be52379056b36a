import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import type { TLSSocket } from "node:tls";
import { asciiJson } from "../../platform/util/ascii-json.ts";
import { traceHeader } from "../../platform/tracing/spans/tracer.ts";
import { hopByHop } from "../http/headers.ts";
import { isHttp2, markHttp2 } from "../request/request-target.ts";
import { helloRecordOf, rememberHello } from "../tls/client-hello.ts";

/** Carries the properties of the connection, as JSON. It never reaches a cell or an origin. */
export const connectionHeader = "x-selvedge-visitor";

/** Headers that belong to the visitor's connection or to the framing of its body. */
const ofConnection: ReadonlySet<string> = new Set([...hopByHop, "content-length"]);

/** The visitor's connection, as an edge process sees it. */
interface VisitorConnection {
  address: string | undefined;
  port: number | undefined;
  localAddress: string | undefined;
  localPort: number | undefined;
  httpVersion: string;
  isHttp2: boolean;
  tls: { cipher: unknown; protocol: string | null; hello: string | undefined } | undefined;
  /** Headers that cannot be forwarded on another connection, each with its index in `rawHeaders`. */
  headers: [index: number, name: string, value: string][];
}

/** The headers of a request to main: those that can be forwarded, and one with the visitor's connection. */
export function headersToMain(request: IncomingMessage): string[] {
  const { socket, rawHeaders } = request;
  const tls = "encrypted" in socket ? (socket as TLSSocket) : undefined;
  const headers: string[] = [];
  const connection: VisitorConnection = {
    address: socket.remoteAddress,
    port: socket.remotePort,
    localAddress: socket.localAddress,
    localPort: socket.localPort,
    httpVersion: request.httpVersion,
    isHttp2: isHttp2(request),
    tls: tls && {
      cipher: tls.getCipher(),
      protocol: tls.getProtocol(),
      hello: helloRecordOf(tls)?.toString("base64"),
    },
    headers: [],
  };
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const [name, value] = [rawHeaders[at]!, rawHeaders[at + 1]!];
    const lower = name.toLowerCase();
    if (ofConnection.has(lower)) connection.headers.push([at, name, value]);
    else if (lower !== connectionHeader && lower !== traceHeader) headers.push(name, value);
    if (lower === "content-length") headers.push(name, value);
  }
  headers.push(connectionHeader, asciiJson(connection));
  return headers;
}

/** In main: restores the visitor's headers and connection properties in a request from an edge process. */
export function restoreVisitor(request: IncomingMessage): void {
  const connection = JSON.parse(String(request.headers[connectionHeader])) as VisitorConnection;
  delete request.headers[connectionHeader];
  const raw: string[] = [];
  for (let at = 0; at < request.rawHeaders.length; at += 2) {
    const name = request.rawHeaders[at]!.toLowerCase();
    if (name !== connectionHeader && !ofConnection.has(name))
      raw.push(request.rawHeaders[at]!, request.rawHeaders[at + 1]!);
  }
  for (const [at, name, value] of connection.headers) {
    raw.splice(at, 0, name, value);
    const lower = name.toLowerCase();
    // Node has parsed the body's framing from this connection, so these two headers stay as parsed.
    if (lower !== "transfer-encoding" && lower !== "content-length") request.headers[lower] = value;
  }
  request.rawHeaders = raw;
  request.httpVersion = connection.httpVersion;
  [request.httpVersionMajor = 1, request.httpVersionMinor = 1] = connection.httpVersion
    .split(".")
    .map(Number);
  if (connection.isHttp2) markHttp2(request);
  Object.defineProperty(request, "socket", { value: visitorSocket(request.socket, connection) });
}

/** A proxy of the internal connection with the addresses and TLS properties of the visitor's connection. */
function visitorSocket(socket: Duplex, connection: VisitorConnection): Duplex {
  const seen: Record<PropertyKey, unknown> = {
    remoteAddress: connection.address,
    remotePort: connection.port,
    localAddress: connection.localAddress,
    localPort: connection.localPort,
  };
  const { tls } = connection;
  if (tls !== undefined)
    Object.assign(seen, {
      encrypted: true,
      getCipher: () => tls.cipher ?? undefined,
      getProtocol: () => tls.protocol,
    });
  if (tls?.hello !== undefined) rememberHello(seen as never, Buffer.from(tls.hello, "base64"));
  return new Proxy(socket, {
    get: (target, key) => (key in seen ? seen[key] : Reflect.get(target, key)) as unknown,
    has: (target, key) => key in seen || key in target,
    set: (target, key, value) => Reflect.set(key in seen ? seen : target, key, value),
  });
}
