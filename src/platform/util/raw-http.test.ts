import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { expect, it } from "vitest";
import { endWith } from "./raw-http.ts";

it("closes an unread connection when the peer closes", async () => {
  // The state in which Node's HTTP server leaves an upgraded socket: half-open and unread.
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const client = connect((server.address() as AddressInfo).port, "127.0.0.1");
  const [socket] = (await once(server, "connection")) as [Socket];
  endWith(socket, "no");
  const closed = once(socket, "close");
  client.write("x".repeat(100_000));
  const [received] = (await once(client, "data")) as [Buffer];
  expect(received.toString()).toBe("no");
  client.end();
  await closed;
  server.close();
});
