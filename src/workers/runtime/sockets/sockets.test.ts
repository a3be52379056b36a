import { once } from "node:events";
import { createServer as createHttpServer, request, type IncomingMessage, type Server } from "node:http";
import { createServer, type AddressInfo, type Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { cellHeaders } from "../../../sandbox/protocol.ts";
import { AddressPolicy } from "../../../edge/origin/address-policy.ts";
import { Origins } from "../../../edge/origin/origins.ts";
import { OutboundSockets } from "../../../edge/origin/outbound-sockets.ts";
import { systemLookUp } from "../../../edge/origin/resolve.ts";
import { edgeDefaults } from "../../../edge/http/settings.ts";
import { readOrder } from "./socket-orders.ts";
import { RunSockets } from "./sockets.ts";

/** Sends orders as a cell does, including orders that the wrapper never sends. */
const settings = { ...edgeDefaults };
let outbound: OutboundSockets;
let proxy: Server;
let sockets: RunSockets;
const echo = createServer((socket) => {
  connected.push(socket.on("error", () => {}));
  socket.pipe(socket);
});
const connected: Socket[] = [];
const portOf = (server: { address(): unknown }): number => (server.address() as AddressInfo).port;

beforeAll(async () => {
  outbound = new OutboundSockets(
    new Origins(settings, new AddressPolicy("all"), "socket"),
    systemLookUp(),
    settings,
  );
  sockets = new RunSockets(outbound, false);
  proxy = createHttpServer((incoming, response) => {
    const order = readOrder(decodeURIComponent(incoming.headers[cellHeaders.socket] as string));
    const done = order.do === "open" ? sockets.open(order, response) : sockets.go(order, incoming, response);
    done.catch((error: Error) => {
      incoming.resume();
      if (!response.headersSent) response.writeHead(403).end(error.message);
    });
  });
  for (const server of [echo, proxy]) await once(server.listen(0, "127.0.0.1"), "listening");
});
afterAll(() => {
  echo.close();
  proxy.close();
  proxy.closeAllConnections();
});

const send = (order: object, body?: string): ReturnType<typeof request> => {
  const outgoing = request({
    port: portOf(proxy),
    method: "POST",
    agent: false,
    headers: { [cellHeaders.socket]: encodeURIComponent(JSON.stringify(order)) },
  }).on("error", () => {});
  if (body !== undefined) outgoing.end(body);
  return outgoing;
};
const answerTo = async (order: object, body = ""): Promise<IncomingMessage> => {
  const [answer] = (await once(send(order, body), "response")) as [IncomingMessage];
  return answer.on("error", () => {});
};
const replyTo = async (order: object): Promise<string> => {
  let text = "";
  for await (const chunk of await answerTo(order)) text += String(chunk);
  return text;
};
const open = async (transport = "off"): Promise<{ answer: IncomingMessage; id: string; other: Socket }> => {
  const came = once(echo, "connection");
  const order = { do: "open", hostname: "127.0.0.1", port: portOf(echo), transport, servername: "" };
  const answer = await answerTo(order);
  await came;
  return { answer, id: answer.headers[cellHeaders.socket] as string, other: connected.at(-1)! };
};
const closed = async (socket: Socket): Promise<void> => {
  if (!socket.closed) await once(socket, "close");
};

describe("sockets of a run", () => {
  it("end after an idle time", async () => {
    settings.idleTimeoutMs = 50;
    const { other, answer } = await open();
    settings.idleTimeoutMs = edgeDefaults.idleTimeoutMs;
    answer.resume();
    await closed(other);
    expect(answer.complete).toBe(false);
  });

  it("end when their reader is gone", async () => {
    const { other, answer } = await open();
    answer.destroy();
    await closed(other);
  });

  it("are reset when a writer breaks off, so that the peer does not mistake a part for the whole", async () => {
    const { other, id, answer } = await open();
    answer.resume();
    const writing = send({ do: "write", id });
    writing.write("part of it");
    await once(other, "data");
    writing.destroy();
    await closed(other);
  });

  it("accept one write at a time", async () => {
    const { other, id, answer } = await open();
    const writing = send({ do: "write", id });
    writing.write("first");
    await once(other, "data");
    expect(await replyTo({ do: "write", id })).toBe("The socket is being written to.");
    answer.destroy();
    await closed(other);
  });

  it("speak TLS only if they were opened for it, and take orders only while they are open", async () => {
    const { id, other, answer } = await open();
    answer.resume();
    expect(await replyTo({ do: "tls", id, servername: "x" })).toBe(
      "The socket was not opened with secureTransport starttls.",
    );
    expect(await replyTo({ do: "close", id })).toBe("");
    await closed(other);
    await expect.poll(async () => replyTo({ do: "end", id })).toBe("The socket is closed.");
    expect(await replyTo({ do: "end", id: "99" })).toBe("The socket is closed.");
  });

  it("are closed when TLS fails", async () => {
    const { id, other } = await open("starttls");
    expect(await replyTo({ do: "tls", id, servername: "x" })).toBe(
      "proxy request failed, cannot connect to the specified address: the TLS handshake failed",
    );
    await closed(other);
  });

  it("are counted, with their bytes", async () => {
    const before = { ...outbound.counts };
    const { id, answer, other } = await open();
    const echoed = once(answer, "data");
    expect((await answerTo({ do: "write", id }, "12345")).statusCode).toBe(204);
    await echoed;
    expect(outbound.counts.open).toBe(before.open + 1);
    await replyTo({ do: "close", id });
    await closed(other);
    await expect
      .poll(() => outbound.counts)
      .toMatchObject({
        opened: before.opened + 1,
        sentBytes: before.sentBytes + 5,
        receivedBytes: before.receivedBytes + 5,
      });
    await expect.poll(() => outbound.counts.open).toBe(0);
  });
});
