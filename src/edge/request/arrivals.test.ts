import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer, connect, type AddressInfo, type Socket } from "node:net";
import { once } from "node:events";
import { expect, it } from "vitest";
import { Arrivals } from "./arrivals.ts";

/** Main's changes, as an edge process sees them: it is current until one is acknowledged. */
class Changes {
  acknowledged = 0;
  inEffect = 0;
  looks = 0;
  get isCurrent(): boolean {
    this.looks++;
    return this.acknowledged === this.inEffect;
  }
}

it("looks once for all requests of a turn, and behind the last byte of each", async () => {
  const changes = new Changes();
  const served: { url: string | undefined; isCurrent: boolean }[] = [];
  const arrivals = new Arrivals(changes, ({ url }, _response, isCurrent) => served.push({ url, isCurrent }));
  const arrive = (url: string): void => arrivals.add({ url } as IncomingMessage, {} as ServerResponse);
  // Both requests are read in one turn, as the kernel reports their sockets together. Between the two reads, main
  // acknowledges a change, and the client of the second has sent its request because of that.
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const accepted: Socket[] = [];
  const bothAreThere = new Promise<void>((resolve) => {
    server.on("connection", (socket) => {
      socket.once("data", (data) => {
        arrive(data.toString());
        changes.acknowledged = 1;
      });
      if (accepted.push(socket) === 2) resolve();
    });
  });
  const clients = [connect(port, "127.0.0.1"), connect(port, "127.0.0.1")];
  await bothAreThere;
  // Written at once, so that the bytes of both are there when the loop turns.
  for (const [index, client] of clients.entries()) client.write(`request ${index}`);
  while (served.length < 2) await new Promise((resolve) => setImmediate(resolve));
  expect(served.map(({ isCurrent }) => isCurrent)).toEqual([false, false]);
  expect(changes.looks).toBe(1);
  changes.inEffect = 1;
  arrive("later");
  arrive("latest");
  expect(served.length).toBe(2);
  while (served.length < 4) await new Promise((resolve) => setImmediate(resolve));
  expect(served.slice(2)).toEqual([
    { url: "later", isCurrent: true },
    { url: "latest", isCurrent: true },
  ]);
  expect(changes.looks).toBe(2);
  for (const socket of [...clients, ...accepted]) socket.destroy();
  server.close();
});
