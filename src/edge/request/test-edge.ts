import {
  createServer,
  request,
  type IncomingHttpHeaders,
  type RequestListener,
  type RequestOptions,
  type Server,
} from "node:http";
import {
  connect,
  createServer as createNetServer,
  type AddressInfo,
  type Server as NetServer,
  type Socket,
} from "node:net";
import { pino } from "pino";
import { onTestFinished } from "vitest";
import { AddressPolicy } from "../origin/address-policy.ts";
import type { EdgeHandler } from "./handlers.ts";
import { Edge } from "./listener.ts";
import type { LookUp } from "../origin/resolve.ts";
import { edgeDefaults, type EdgeSettings } from "../http/settings.ts";
import { EdgeSnapshot, EdgeZone, type OriginRule, type OriginTarget } from "../configuration/snapshot.ts";

export const host = "www.example.com";

export interface TestEdge {
  edge: Edge;
  port: number;
  zone: EdgeZone;
  snapshot: EdgeSnapshot;
}

/** Starts an edge with the zone example.com, whose host `www` points to the targets at the origin's port. */
export async function startEdge(options: {
  originPort: number;
  targets?: readonly OriginTarget[];
  settings?: Partial<EdgeSettings>;
  policy?: AddressPolicy;
  lookUp?: LookUp;
  rule?: Partial<OriginRule>;
  handlers?: readonly EdgeHandler[];
}): Promise<TestEdge> {
  const zone = new EdgeZone("z1", "example.com", false);
  zone.setHost(host, {
    isProxied: true,
    targets: options.targets ?? [{ type: "A", content: "127.0.0.1" }],
  });
  zone.originRules = [{ matches: () => true, port: options.originPort, ...options.rule }];
  const snapshot = new EdgeSnapshot();
  snapshot.add(zone);
  const edge = new Edge({
    settings: { ...edgeDefaults, ...options.settings },
    snapshot,
    policy: options.policy ?? new AddressPolicy("origins"),
    lookUp: options.lookUp ?? (async (name) => Promise.reject(new Error(`no address of ${name}`))),
    logger: pino({ level: "silent" }),
    handlers: options.handlers ?? [],
  });
  const { port } = await edge.listen({ host: "127.0.0.1", port: 0 });
  onTestFinished(() => edge.close(0));
  return { edge, port, zone, snapshot };
}

/** Starts a real HTTP origin that counts its connections. */
export async function startOrigin(
  listener: RequestListener,
): Promise<{ server: Server; port: number; connections: () => number }> {
  const server = createServer(listener);
  let connections = 0;
  server.on("connection", () => (connections += 1));
  const port = await listenOn(server);
  onTestFinished(() => server.closeAllConnections());
  return { server, port, connections: () => connections };
}

/** Starts an origin that handles raw sockets. */
export async function startRawOrigin(onSocket: (socket: Socket) => void): Promise<number> {
  const sockets = new Set<Socket>();
  const server = createNetServer((socket) => {
    sockets.add(socket.on("error", () => {}));
    onSocket(socket);
  });
  const port = await listenOn(server);
  onTestFinished(() => sockets.forEach((socket) => socket.destroy()));
  return port;
}

/** A port of 127.0.0.1 without a listener. */
export interface VisitorResponse {
  status: number;
  headers: IncomingHttpHeaders;
  rawHeaders: string[];
  trailers: NodeJS.Dict<string>;
  body: string;
}

/** Sends one request to the edge and reads the whole response. */
export function requestEdge(
  port: number,
  options: RequestOptions = {},
  body?: string | Buffer,
): Promise<VisitorResponse> {
  return new Promise((resolve, reject) => {
    const outgoing = request({
      host: "127.0.0.1",
      port,
      agent: false,
      ...options,
      headers: { host, ...(options.headers as Record<string, string>) },
    });
    outgoing.on("error", reject);
    outgoing.on("response", (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => (text += chunk));
      response.on("error", reject);
      response.on("end", () => {
        const { statusCode: status = 0, headers, rawHeaders, trailers } = response;
        resolve({ status, headers, rawHeaders, trailers, body: text });
      });
    });
    outgoing.end(body);
  });
}

/** Sends raw bytes and returns everything received until the edge closes the connection. */
export function exchangeBytes(port: number, bytes: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    let text = "";
    socket.setEncoding("latin1");
    socket.on("data", (chunk: string) => (text += chunk));
    socket.on("error", () => {});
    socket.on("close", () => resolve(text));
    socket.write(bytes, "latin1");
  });
}

async function listenOn(server: NetServer): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}
