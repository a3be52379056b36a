import { describe, expect, test } from "vitest";
import { failed, ports, run } from "./sockets-harness.ts";

/** `node:net` and `node:tls` over `connect()`. */
describe("node:net and node:tls", () => {
  const talk = (more = ""): string => `${more}
    let all = ""; socket.on("data", (chunk) => (all += chunk)); socket.on("end", () => got.push(all, "end"));
    await new Promise((resolve, reject) => socket.on("close", resolve).on("error", reject));
    return got;`;

  test("net.connect() opens a connection", async () => {
    expect(
      await run(`const socket = net.connect(PORT.echo, "127.0.0.1"), got = [];
        socket.on("connect", () => { got.push(socket.remoteAddress, socket.remotePort, socket.remoteFamily); socket.write("hi"); socket.end(" there"); });
        ${talk()}`),
    ).toEqual(["127.0.0.1", ports.echo, "IPv4", "hi there", "end"]);
    expect(
      await run(`const socket = new net.Socket(), got = []; socket.connect({ host: "db.internal", port: PORT.echo, lookup: (host, options, done) => done(null, "127.0.0.1", 4) }, () => socket.end("looked up"));
        ${talk()}`),
    ).toEqual(["looked up", "end"]);
    expect(
      await run(`const { lookup } = process.getBuiltinModule("node:dns");
        const socket = net.connect({ host: "localhost", port: PORT.echo, lookup }, () => socket.end("as usual")), got = [];
        ${talk()}`),
    ).toEqual(["as usual", "end"]);
  });

  test("tls.connect() opens an encrypted connection", async () => {
    expect(
      await run(`const socket = tls.connect(PORT.secure, "127.0.0.1", { servername: "db.example" }), got = [];
        socket.on("secureConnect", () => { got.push(socket.authorized, socket.encrypted); socket.end("hi"); });
        ${talk()}`),
    ).toEqual([true, true, "hi", "end"]);
  });

  test("tls.connect() over a socket that is being read", async () => {
    expect(
      await run(`const plain = net.connect(PORT.starting, "localhost"), got = [];
        await new Promise((resolve, reject) => plain.once("connect", resolve).once("error", reject));
        plain.write("please");
        got.push(String(await new Promise((resolve) => plain.once("data", resolve))));
        const socket = tls.connect({ socket: plain, servername: "db.example" });
        socket.on("secureConnect", () => socket.end("hi"));
        ${talk()}`),
    ).toEqual(["go", "hi", "end"]);
  });

  test("errors are emitted", async () => {
    const errorOf = (socket: string): string =>
      `return new Promise((resolve) => ${socket}.on("error", ({ message }) => resolve(message)));`;
    expect(await run(errorOf(`net.connect(PORT.closed, "127.0.0.1")`))).toBe(
      `${failed}: the connection was refused`,
    );
    expect(await run(errorOf(`tls.connect(PORT.foreign, "localhost")`))).toBe(
      `${failed}: its certificate is not valid for this name`,
    );
    expect(
      await run(
        `return [thrown(() => net.connect(70000)), thrown(() => net.connect({ path: "/run/x.sock" })), thrown(() => new net.Socket().connect({}))]`,
      ),
    ).toEqual([
      "RangeError: Port should be >= 0 and < 65536. Received 70000.",
      "TypeError: Sockets of the file system are not available here.",
      'TypeError: The "options" or "port" or "path" argument must be specified',
    ]);
  });

  test("listening is refused", async () => {
    expect(await run(`return thrown(() => net.createServer().listen(8080))`)).toBe(
      "Error: Listening for connections (listen() of node:net) is not available here.",
    );
    // A node:http server only marks which requests the script handles.
    expect(
      await run(`const { createServer, Server } = await import("node:http");
        return [Server.prototype instanceof net.Server, typeof createServer(() => {}).listen(8080)];`),
    ).toEqual([false, "object"]);
  });
});
