import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { rmSync } from "node:fs";
import { announceEnd, drain, listen } from "../../control/api/server/listener.ts";
import type { Opened } from "../../capability.ts";
import { responseClass } from "../../platform/access-log/counted-response.ts";
import { whileAnswering } from "../../platform/observability/last-net.ts";
import { isWebSocket } from "../origin/upgrade.ts";
import type { EdgeSettings } from "../http/settings.ts";
import type { Edge } from "../request/listener.ts";
import { restoreVisitor } from "./visitor-connection.ts";

/**
 * The properties of the visitor's connection are a header: with a whole ClientHello, and headers of which JSON may write a
 * character with six.
 */
const helloBytesMax = 64 * 1024;
const jsonExpansion = 6;

/** In main: serves the requests that edge processes pass on, as if their visitors were connected to main. */
export async function serveFromEdges(
  path: string,
  edge: Edge,
  settings: EdgeSettings,
  log: { readonly isOn: boolean },
): Promise<Opened> {
  const server: Server = createServer({
    ServerResponse: responseClass(log),
    requireHostHeader: false,
    maxHeaderSize: settings.headerBytesMax * (2 + jsonExpansion) + helloBytesMax,
    requestTimeout: 0,
    keepAliveTimeout: 60_000,
    shouldUpgradeCallback: isWebSocket,
  });
  server.maxHeadersCount = settings.headerCountMax * 2 + 2;
  server.setTimeout(0);
  server.on("request", (request: IncomingMessage, response: ServerResponse) => {
    whileAnswering(
      response,
      () => response.destroy(),
      () => {
        restoreVisitor(request);
        edge.serve(request, response);
      },
    );
  });
  server.on("upgrade", (request: IncomingMessage, socket: Socket, head: Buffer) => {
    whileAnswering(
      socket,
      () => socket.destroy(),
      () => {
        restoreVisitor(request);
        edge.serveUpgrade(request, socket, head);
      },
    );
  });
  rmSync(path, { force: true });
  await listen(server, { path });
  return {
    announceEnd: () => announceEnd(server),
    close: (deadlineMs) => drain(server, deadlineMs),
  };
}
