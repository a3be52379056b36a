import { createServer } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { WebSocketServer } from "ws";

/** Echoes requests and WebSocket messages. */
export async function startOrigin(): Promise<{ port: number; close(): Promise<void> }> {
  const sockets = new Set<Socket>();
  const server = createServer((request, response) => {
    request.on("error", () => {});
    response.writeHead(200, { "content-type": "text/plain" });
    request.pipe(response);
  });
  const webSockets = new WebSocketServer({ server });
  webSockets.on("connection", (socket) => {
    socket.on("error", () => {}).on("message", (data, isBinary) => socket.send(data, { binary: isBinary }));
  });
  server.on("connection", (socket: Socket) => {
    sockets.add(socket.on("close", () => sockets.delete(socket)).on("error", () => {}));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
