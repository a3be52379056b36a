import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { connect, type AddressInfo } from "node:net";
import { AddressPolicy, type PrivateNetworks } from "../../src/edge/origin/address-policy.ts";
import { Edge } from "../../src/edge/request/listener.ts";
import type { LookUp } from "../../src/edge/origin/resolve.ts";
import { edgeDefaults, type EdgeSettings } from "../../src/edge/http/settings.ts";
import { EdgeSnapshot, EdgeZone, type OriginTarget } from "../../src/edge/configuration/snapshot.ts";
import { createLogger } from "../../src/platform/observability/logger.ts";

export interface TestEdge {
  edge: Edge;
  url: string;
  port: number;
  zone: EdgeZone;
  policy: AddressPolicy;
  close(): Promise<void>;
}

/** Starts an edge with the zone a.example and the given names; origins are on `originPort`. */
export async function startEdge(
  hosts: Record<string, OriginTarget[]>,
  originPort: number,
  more: { settings?: Partial<EdgeSettings>; lookUp?: LookUp; privateNetworks?: PrivateNetworks } = {},
): Promise<TestEdge> {
  const snapshot = new EdgeSnapshot();
  const zone = new EdgeZone("z", "a.example", false);
  for (const [name, targets] of Object.entries(hosts)) zone.setHost(name, { isProxied: true, targets });
  zone.originRules = [{ matches: () => true, port: originPort }];
  snapshot.add(zone);
  const policy = new AddressPolicy(more.privateNetworks ?? "origins");
  const edge = new Edge({
    settings: { ...edgeDefaults, ...more.settings },
    snapshot,
    policy,
    lookUp: more.lookUp ?? (() => Promise.reject(new Error("no such name"))),
    logger: createLogger("fatal"),
  });
  const { port } = await edge.listen({ host: "127.0.0.1", port: 0 });
  return { edge, zone, policy, port, url: `http://127.0.0.1:${port}`, close: () => edge.close(1000) };
}

export const loopback: OriginTarget[] = [{ type: "A", content: "127.0.0.1" }];

export interface TestOrigin {
  server: Server;
  port: number;
  /** Number of connections so far. */
  connections(): number;
  close(): void;
}
export async function startOrigin(
  handle: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<TestOrigin> {
  let connections = 0;
  const server = createServer(handle);
  server.on("connection", () => (connections += 1));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    server,
    port: (server.address() as AddressInfo).port,
    connections: () => connections,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** Sends raw bytes and returns everything received until the connection closes or `until` was received. */
export function raw(port: number, bytes: string, until?: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let received = "";
    const socket = connect(port, "127.0.0.1", () => socket.write(bytes, "latin1"));
    const done = (): void => {
      socket.destroy();
      resolve(received);
    };
    socket.on("data", (chunk) => {
      received += chunk.toString("latin1");
      if (until !== undefined && received.includes(until)) done();
    });
    socket.on("end", done);
    socket.on("error", (error) => (received === "" ? reject(error) : done()));
  });
}
