import { once } from "node:events";
import { createServer } from "node:http";
import { connect } from "node:net";
import { it } from "vitest";
import { drain, listen } from "./listener.ts";

it("closes the remaining connections at the deadline, including WebSockets", async () => {
  const server = createServer();
  server.on("upgrade", (_request, socket) => socket.write("HTTP/1.1 101 Switching Protocols\r\n\r\n"));
  const { port } = await listen(server, { host: "127.0.0.1", port: 0 });
  const client = connect(port, "127.0.0.1");
  client.write("GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n");
  await once(client, "data");
  const closed = new Promise((resolve) => client.once("close", resolve));
  await drain(server, 0);
  await closed;
});
