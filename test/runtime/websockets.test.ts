import { once } from "node:events";
import type { IncomingHttpHeaders } from "node:http";
import { connect as connectTo } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { WebSocketServer } from "ws";
import { nextMessage, startHosting, startOutside, type Hosting, type Outside } from "./platform.ts";

let hosting: Hosting;
let outside: Outside;
const handshakes: { url: string | undefined; headers: IncomingHttpHeaders }[] = [];

beforeAll(async () => {
  hosting = await startHosting({ privateNetworks: "all" });
  outside = await startOutside((request, response) => response.end(`fetched ${request.url}`));
  const sockets = new WebSocketServer({ server: outside.server });
  sockets.on("connection", (socket, { url, headers }) => {
    handshakes.push({ url, headers });
    socket.on("message", (data: Buffer) => socket.send(`outside heard ${data.toString()}`));
  });
});
afterAll(async () => {
  await outside.close();
  await hosting.close(0);
});

const echo = `export default { fetch(request, env) {
  const [client, server] = Object.values(new WebSocketPair());
  server.accept();
  server.addEventListener("message", async ({ data }) => {
    if (data === "close") return server.close(4001, "as you wish");
    const text = data === "fetch" ? await (await fetch("OUTSIDE/late")).text() : "heard " + data;
    server.send(text);
  });
  return new Response(null, { status: 101, webSocket: client, headers: { "x-header": "yes" } });
} };`;

describe("a visitor's WebSocket", () => {
  test("is a script's, which may fetch while it is open", async () => {
    await hosting.deploy("echo", echo.replace("OUTSIDE", outside.url));
    const socket = hosting.connect("echo");
    const upgraded = once(socket, "upgrade") as Promise<[{ headers: IncomingHttpHeaders }]>;
    await once(socket, "open");
    expect((await upgraded)[0].headers["x-header"]).toBe("yes");
    for (const text of ["one", "two"]) {
      socket.send(text);
      expect(await nextMessage(socket)).toBe(`heard ${text}`);
    }
    socket.send("fetch");
    expect(await nextMessage(socket)).toBe("fetched /late");
    socket.send("close");
    expect(await once(socket, "close")).toEqual([4001, Buffer.from("as you wish")]);
  });

  test.each([
    ["a visitor", "echo"],
    ["a visitor of an object", "room"],
  ])("ends when %s sends a message of empty frames without end, and others stay open", async (_, script) => {
    await hosting.deploy("other", echo);
    if (script === "echo") await hosting.deploy("echo", echo);
    else
      await hosting.deploy("room", {
        code: `import { DurableObject } from "cloudflare:workers";
export class Room extends DurableObject { fetch() {
  const [client, server] = Object.values(new WebSocketPair());
  this.ctx.acceptWebSocket(server);
  return new Response(null, { status: 101, webSocket: client });
} }
export default { fetch: (request, env) => env.ROOMS.getByName("x").fetch(request) };`,
        bindings: [{ type: "durable_object_namespace", name: "ROOMS", class_name: "Room" }],
        metadata: { migrations: { new_tag: "v1", new_sqlite_classes: ["Room"] } },
      });
    const innocent = hosting.connect("other");
    await once(innocent, "open");
    const { hostname, port } = new URL(hosting.ready.edge);
    const socket = connectTo(Number(port), hostname);
    socket.on("error", () => {}); // the end of the connection, while the client sends
    const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
    const head = ["connection: Upgrade", "upgrade: websocket", "sec-websocket-version: 13"];
    const key = "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==";
    socket.write(
      `GET / HTTP/1.1\r\nhost: ${hosting.hostOf(script)}\r\n${[...head, key].join("\r\n")}\r\n\r\n`,
    );
    expect(String((await once(socket, "data"))[0])).toMatch(/^HTTP\/1.1 101 /);
    socket.resume();
    // Each frame takes six bytes, and many times more in the memory of a receiver.
    const frames = Buffer.from("008000000000", "hex");
    const bytes = Buffer.concat(Array<Buffer>(1000).fill(frames));
    socket.write(Buffer.from("018000000000", "hex"));
    let sentBytes = 0;
    const send = (): void => {
      if (socket.destroyed) return;
      sentBytes += bytes.length;
      socket.write(bytes, send);
    };
    send();
    await closed;
    // Buffers between the two take some bytes in addition to 65,536 frames.
    expect(sentBytes).toBeLessThan(8 * 1024 * 1024);
    innocent.send("still there");
    expect(await nextMessage(innocent)).toBe("heard still there");
    innocent.terminate();
  });

  test("carries large and binary messages", async () => {
    await hosting.deploy("echo", echo);
    await hosting.deploy(
      "bytes",
      `export default { fetch() {
        const [client, server] = Object.values(new WebSocketPair());
        server.accept();
        server.binaryType = "arraybuffer";
        server.onmessage = ({ data }) => server.send(data);
        return new Response(null, { status: 101, webSocket: client });
      } };`,
    );
    const socket = hosting.connect("bytes");
    await once(socket, "open");
    const bytes = Buffer.alloc(512 * 1024, 7);
    socket.send(bytes);
    const [answer, isBinary] = (await once(socket, "message")) as [Buffer, boolean];
    expect(isBinary).toBe(true);
    expect(answer.equals(bytes)).toBe(true);
    socket.close();
  });

  test("passes through a dispatcher to a customer, and through a service", async () => {
    await hosting.createNamespace("sockets");
    await hosting.deployCustomer("sockets", "customer", echo.replace("OUTSIDE", outside.url));
    await hosting.deploy("dispatcher", {
      code: `export default { fetch: (request, env) => env.NS.get("customer").fetch(request) };`,
      bindings: [{ type: "dispatch_namespace", name: "NS", namespace: "sockets" }],
    });
    await hosting.deploy("through-service", {
      code: `export default { fetch: (request, env) => env.ECHO.fetch(request) };`,
      bindings: [{ type: "service", name: "ECHO", service: "dispatcher" }],
    });
    for (const script of ["dispatcher", "through-service"]) {
      const socket = hosting.connect(script);
      await once(socket, "open");
      socket.send("hello");
      expect(await nextMessage(socket)).toBe("heard hello");
      socket.send("fetch");
      expect(await nextMessage(socket)).toBe("fetched /late");
      socket.close();
    }
  });

  test("that a script does not read ends with its answer", async () => {
    await hosting.deploy(
      "refusing",
      `export default { fetch: () => new Response("not here", { status: 426 }) };`,
    );
    const socket = hosting.connect("refusing");
    const [error] = (await once(socket, "error")) as [Error];
    expect(error.message).toContain("426");
    await hosting.deploy("throwing", `export default { fetch() { throw new Error("no"); } };`);
    const [thrown] = (await once(hosting.connect("throwing"), "error")) as [Error];
    expect(thrown.message).toContain("500");
  });

  test("goes on to the origin when the script fetches its request", async () => {
    await hosting.createZone("socket.example", outside.port);
    const { body } = await hosting.call("GET", "/zones?name=socket.example");
    const [{ id }] = body.result as [{ id: string }];
    await hosting.deploy("passing", `export default { fetch: (request) => fetch(request) };`);
    await hosting.call("POST", `/zones/${id}/workers/routes`, {
      pattern: "socket.example/*",
      script: "passing",
    });
    const socket = hosting.connect("any", "/to-origin", "socket.example");
    await once(socket, "open");
    socket.send("hi");
    expect(await nextMessage(socket)).toBe("outside heard hi");
    expect(handshakes.at(-1)).toMatchObject({ url: "/to-origin", headers: { host: "socket.example" } });
    socket.close();
  });
});

describe("a script's own WebSocket", () => {
  const asked = async (code: string): Promise<unknown> => {
    await hosting.deploy(
      "client",
      `export default { async fetch(request) { ${code.replaceAll("OUTSIDE", outside.url)} } };`,
    );
    const { status, body } = await hosting.ask("client");
    expect(status, body).toBe(200);
    return JSON.parse(body) as unknown;
  };

  test("may be asked for with fetch", async () => {
    expect(
      await asked(`const { webSocket, status } = await fetch("OUTSIDE/asked", { headers: { upgrade: "websocket" } });
        webSocket.accept();
        webSocket.send("me");
        return new Promise((resolve) => webSocket.addEventListener("message", async ({ data }) => {
          const late = await (await fetch("OUTSIDE/late")).text();
          webSocket.close();
          resolve(Response.json([status, data, late]));
        }));`),
    ).toEqual([101, "outside heard me", "fetched /late"]);
  });

  test("may be made with new, and the outside sees only what the script offers", async () => {
    expect(
      await asked(`const socket = new WebSocket("OUTSIDE/made".replace("http", "ws"), ["chat", "other"]);
        return new Promise((resolve, reject) => {
          socket.onopen = () => socket.send("me");
          socket.onmessage = async ({ data }) => {
            const late = await (await fetch("OUTSIDE/late")).text();
            resolve(Response.json([data, late, socket.protocol, socket instanceof WebSocket, socket.url]));
            socket.close();
          };
          socket.onerror = ({ message }) => resolve(Response.json(message));
        });`),
    ).toEqual([
      "outside heard me",
      "fetched /late",
      "chat",
      true,
      `${outside.url.replace("http", "ws")}/made`,
    ]);
    const { headers } = handshakes.find(({ url }) => url === "/made")!;
    expect(headers["sec-websocket-protocol"]).toBe("chat, other");
    expect(JSON.stringify(headers)).not.toContain("selvedge");
    await asked(`const socket = new WebSocket("OUTSIDE/plain".replace("http", "ws"));
      return new Promise((resolve) => { socket.onopen = () => { resolve(Response.json(1)); socket.close(); }; });`);
    const plain = handshakes.find(({ url }) => url === "/plain")!;
    expect(plain.headers["sec-websocket-protocol"]).toBe(undefined);
  });

  test("may be of a class of its own", async () => {
    expect(
      await asked(`class Talking extends WebSocket { talk() { this.send("mine"); } }
        const socket = new Talking("OUTSIDE/class".replace("http", "ws"));
        return new Promise((resolve) => {
          socket.onopen = () => socket.talk();
          socket.onmessage = ({ data }) => { resolve(Response.json(data)); socket.close(); };
          socket.onerror = ({ message }) => resolve(Response.json(message));
        });`),
    ).toBe("outside heard mine");
  });

  test("keeps listeners as the platform does: once, removed, handlers replaced", async () => {
    expect(
      await asked(`const [a, b] = Object.values(new WebSocketPair());
        a.accept(); b.accept();
        const received = [];
        const gone = () => received.push("gone");
        b.addEventListener("message", () => received.push("once"), { once: true });
        b.addEventListener("message", gone);
        b.removeEventListener("message", gone);
        b.addEventListener("message", { handleEvent: ({ data }) => received.push("object " + data) });
        b.onmessage = () => received.push("first");
        b.onmessage = ({ data }) => received.push("second " + data);
        a.send("1"); a.send("2");
        await scheduler.wait(20);
        return Response.json(received.sort());`),
    ).toEqual(["object 1", "object 2", "once", "second 1", "second 2"]);
  });
});
