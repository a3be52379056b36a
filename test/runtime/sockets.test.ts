import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startHosting, type Hosting } from "./platform.ts";
import { failed, hosting, listen, ports, run, scriptOf } from "./sockets-harness.ts";

/** `connect()` of cloudflare:sockets, between a script and a server on this machine. */
describe("connect()", () => {
  test.each([
    [`{ hostname: "127.0.0.1", port: PORT.echo }`, "127.0.0.1"],
    [`{ hostname: "localhost", port: "PORT.echo" }`, "localhost"],
    [`"127.0.0.1:PORT.echo"`, "127.0.0.1"],
  ])("to %s writes and reads", async (address, host) => {
    expect(
      await run(`const socket = connect(${address});
        const before = [socket.upgraded, socket.secureTransport, socket.readable.locked];
        await say(socket, "hello"); // before it is open
        const opened = await socket.opened;
        await socket.writable.close();
        const got = await text(socket.readable);
        await socket.closed;
        return [before, opened, got];`),
    ).toEqual([[false, "off", false], { remoteAddress: `${host}:${ports.echo}` }, "hello"]);
  });

  test("passes received data to a response, and to byte readers", async () => {
    const piped = `const socket = connect("127.0.0.1:PORT.echo"); await say(socket, "piped"); await socket.writable.close(); return new Response(socket.readable);`;
    await hosting.deploy("piping", scriptOf(piped, ""));
    expect((await hosting.ask("piping")).body).toBe("piped");
    expect(
      await run(`const socket = connect("127.0.0.1:PORT.echo"); await say(socket, "abcdef");
        const reader = socket.readable.getReader({ mode: "byob" });
        const { value } = await reader.readAtLeast(4, new Uint8Array(4));
        return new TextDecoder().decode(value);`),
    ).toBe("abcd");
  });

  test("works for scripts of every date", async () => {
    const code = `const socket = connect("127.0.0.1:PORT.echo"); await say(socket, "old"); await socket.writable.close(); return [await text(socket.readable)];`;
    await hosting.deploy("old", { code: scriptOf(code, ""), metadata: { compatibility_date: "2021-11-10" } });
    expect((await hosting.ask("old")).body).toBe('{"value":["old"]}');
  });

  test("TLS trusts the same authorities as fetch", async () => {
    const secure = (
      host: string,
      port: string,
    ): string => `const socket = connect("${host}:${port}", { secureTransport: "on" });
      await say(socket, "secret"); await socket.writable.close();
      return [await text(socket.readable), socket.secureTransport];`;
    expect(await run(secure("localhost", "PORT.secure"))).toEqual(["secret", "on"]);
    expect(await run(secure("127.0.0.1", "PORT.secure"))).toEqual(["secret", "on"]);
    expect(await run(secure("localhost", "PORT.foreign"))).toBe(
      `thrown: ${failed}: its certificate is not valid for this name`,
    );
  });

  const start = `const socket = connect("localhost:PORT.starting", { secureTransport: "starttls" });
    await say(socket, "please");
    const reader = socket.readable.getReader();
    const go = new TextDecoder().decode((await reader.read()).value);
    reader.releaseLock();`;

  test("startTls() encrypts a connection from then on", async () => {
    expect(
      await run(`${start}
        const secure = socket.startTls();
        await secure.opened;
        await socket.closed;
        await say(secure, "secret");
        await secure.writable.close();
        const got = await text(secure.readable);
        await secure.closed;
        return [go, got, socket.upgraded, secure.upgraded, secure.secureTransport];`),
    ).toEqual(["go", "secret", true, false, "on"]);
    expect(
      await run(`${start} const secure = socket.startTls({ expectedServerHostname: "db.example" });
        await say(secure, "x"); await secure.writable.close(); return text(secure.readable);`),
    ).toBe("x");
    expect(
      await run(
        `${start} return failure(socket.startTls({ expectedServerHostname: "evil.example" }).opened);`,
      ),
    ).toBe(`${failed}: its certificate is not valid for this name`);
  });

  test("startTls() that cannot be is refused", async () => {
    expect(
      await run(`const plain = connect("127.0.0.1:PORT.echo");
        const secure = connect("localhost:PORT.secure", { secureTransport: "on" });
        const locked = connect("127.0.0.1:PORT.echo", { secureTransport: "starttls" }); locked.readable.getReader();
        const closing = connect("127.0.0.1:PORT.echo", { secureTransport: "starttls" }); closing.close();
        const twice = connect("127.0.0.1:PORT.echo", { secureTransport: "starttls" }); twice.startTls().opened.catch(() => {});
        return [plain, secure, locked, closing, twice].map((socket) => thrown(() => socket.startTls()));`),
    ).toEqual([
      "TypeError: The `secureTransport` socket option must be set to 'starttls' for startTls to be used.",
      "TypeError: Cannot startTls on a TLS socket.",
      "TypeError: startTls takes a socket whose readable and writable are not locked.",
      "TypeError: The connection was closed before startTls could be started.",
      "TypeError: startTls has already been called on this socket.",
    ]);
  });

  test("explains invalid addresses and options", async () => {
    expect(
      await run(`return ["", "x", ":1", "a b:1", "[::1:1", { hostname: "", port: 1 }, { hostname: "x y", port: 1 }, { hostname: "x", port: 0 }, { hostname: "x", port: 1.5 }, { hostname: "x".repeat(256), port: 1 }]
        .map((address) => thrown(() => connect(address))).concat(thrown(() => connect("x:1", { secureTransport: "tls" })));`),
    ).toEqual([
      "TypeError: Specified address is missing hostname.",
      "TypeError: Specified address is missing port.",
      "TypeError: Specified address could not be parsed.",
      "TypeError: Specified address could not be parsed.",
      "TypeError: Specified address could not be parsed.",
      ...Array.from(
        { length: 2 },
        () => "TypeError: Specified address is empty string, contains unsupported characters or is too long.",
      ),
      "TypeError: Expected a port from 1 to 65535 but received 0.",
      "TypeError: Expected a port from 1 to 65535 but received 1.5.",
      "TypeError: Specified address is empty string, contains unsupported characters or is too long.",
      "TypeError: Unsupported value in secureTransport socket option: tls",
    ]);
  });

  test("that fails rejects opened, closed, reads and writes", async () => {
    const reason = `${failed}: the connection was refused`;
    expect(
      await run(`const socket = connect("127.0.0.1:PORT.closed");
        const writing = failure(say(socket, "x"));
        return Promise.all([failure(socket.opened), failure(socket.closed), failure(text(socket.readable)), writing]);`),
    ).toEqual([reason, reason, reason, reason]);
    expect(await run(`return failure(connect("nowhere.invalid:1").opened)`)).toBe(
      `${failed}: the name has no address`,
    );
    expect(await run(`return failure(connect("127.0.0.1:80").opened)`)).toContain(
      "consider using fetch instead",
    );
  });

  test("works only while handling a request", async () => {
    await hosting.deploy(
      "early",
      `import { connect } from "cloudflare:sockets"; let message; try { connect("127.0.0.1:1"); } catch (error) { ({ message } = error); }
       export default { fetch: () => new Response(message) };`,
    );
    expect((await hosting.ask("early")).body).toBe("This works only while handling a request.");
  });
});

describe("the end of a socket", () => {
  /** A server that ends its side at once, and records the data until the other side ends too. */
  const ending = async (): Promise<{ port: number; received: Promise<string> }> => {
    const { promise: received, resolve } = Promise.withResolvers<string>();
    const port = await listen((socket) => {
      let all = "";
      socket.on("data", (chunk: Buffer) => (all += chunk.toString()));
      socket.on("close", () => resolve(all));
      socket.on("end", () => socket.destroySoon());
      socket.end("bye");
    });
    return { port, received };
  };

  test("with allowHalfOpen the script may keep writing after the peer has ended its side", async () => {
    const { port, received } = await ending();
    expect(
      await run(`const socket = connect("127.0.0.1:${port}", { allowHalfOpen: true });
        const got = await text(socket.readable);
        await say(socket, "one "); await say(socket, "two");
        await socket.writable.close(); await socket.closed;
        return got;`),
    ).toBe("bye");
    expect(await received).toBe("one two");
  });

  test("without allowHalfOpen the socket ends with the peer's side", async () => {
    const { port, received } = await ending();
    expect(
      await run(`const socket = connect("127.0.0.1:${port}");
        const got = await text(socket.readable);
        await socket.closed;
        return [got, await failure(say(socket, "late"))];`),
    ).toEqual(["bye", "Network connection lost."]);
    expect(await received).toBe("");
  });

  test("close() flushes writes first, and resolves when the connection has ended", async () => {
    const { promise: received, resolve } = Promise.withResolvers<string>();
    const port = await listen((socket) => {
      let all = "";
      socket.on("data", (chunk: Buffer) => (all += chunk.toString()));
      socket.on("end", () => resolve(all));
    });
    expect(
      await run(`const socket = connect("127.0.0.1:${port}");
        const writer = socket.writable.getWriter();
        for (let i = 0; i < 100; i++) writer.write(new Uint8Array(1000).fill(97)).catch(() => {});
        const closing = socket.close();
        return [socket.close() === closing, await closing === undefined, await failure(writer.write(new Uint8Array(1)))];`),
    ).toEqual([true, true, "Network connection lost."]);
    expect((await received).length).toBe(100_000);
  });

  test("a connection that breaks off fails what reads, and `closed`", async () => {
    const port = await listen((socket) => socket.once("data", () => socket.resetAndDestroy()));
    expect(
      await run(`const socket = connect("127.0.0.1:${port}"); await say(socket, "x");
        return Promise.all([failure(text(socket.readable)), failure(socket.closed)]);`),
    ).toEqual(["Network connection lost.", "Network connection lost."]);
  });

  test("a script that does not read can still write", async () => {
    expect(
      await run(`const socket = connect("127.0.0.1:PORT.echo"); await socket.opened; await socket.readable.cancel();
        await say(socket, "x"); await say(socket, "y"); await socket.writable.close(); await socket.closed; return "done";`),
    ).toBe("done");
  });

  /** A server that records the end of its next connection. */
  const watched = async (): Promise<{ port: number; closed: Promise<void>; received: Promise<string> }> => {
    const closed = Promise.withResolvers<void>();
    const received = Promise.withResolvers<string>();
    const port = await listen((socket) => {
      socket.once("data", (chunk: Buffer) => received.resolve(chunk.toString()));
      socket.on("close", () => closed.resolve());
      socket.on("end", () => socket.end());
    });
    return { port, closed: closed.promise, received: received.promise };
  };

  test("a socket that is left open ends with its request", async () => {
    const { port, closed } = await watched();
    expect(
      await run(`const socket = connect("127.0.0.1:${port}"); await socket.opened; return "left";`),
    ).toBe("left");
    await closed;
  });

  test("work left running may use its socket after the answer", async () => {
    const { port, closed, received } = await watched();
    const late = `const socket = connect("127.0.0.1:${port}"); await socket.opened;
      ctx.waitUntil((async () => { await scheduler.wait(20); await say(socket, "late"); await socket.close(); })()); return 1;`;
    expect(await run(late)).toBe(1);
    expect(await received).toBe("late");
    await closed;
  });
});

describe("applies back-pressure to bytes", () => {
  const mebibyte = 1024 * 1024;
  const total = 96 * mebibyte;
  const quietMs = 300;

  test("from the other side", async () => {
    let sent = 0;
    let stalledAt: number | undefined;
    const sending = await listen((socket) => {
      const chunk = Buffer.alloc(mebibyte);
      const more = (): void => {
        while (sent < total) {
          sent += mebibyte;
          if (socket.write(chunk)) continue;
          const timer = setTimeout(() => (stalledAt ??= sent), quietMs);
          socket.once("drain", () => {
            clearTimeout(timer);
            more();
          });
          return;
        }
        socket.end();
      };
      more();
    });
    /** Answers once the sender has stopped. */
    const asking = await listen((socket) => {
      const timer = setInterval(() => {
        if (stalledAt === undefined) return;
        clearInterval(timer);
        socket.end();
      }, 10);
    });
    expect(
      await run(`const socket = connect("127.0.0.1:${sending}");
        const reader = socket.readable.getReader();
        let bytes = (await reader.read()).value.length;
        await text(connect("127.0.0.1:${asking}").readable);
        for (;;) { const { done, value } = await reader.read(); if (done) return bytes; bytes += value.length; }`),
    ).toBe(total);
    expect(stalledAt).toBeLessThan(32 * mebibyte);
  });

  test("from the script", async () => {
    const { promise: went, resolve: go } = Promise.withResolvers<void>();
    let got = 0;
    const receiving = await listen((socket) => {
      socket.on("data", (chunk: Buffer) => (got += chunk.length)).pause();
      void went.then(() => socket.resume());
      socket.on("end", () => socket.end(String(got)));
    });
    const going = await listen((socket) => {
      go();
      socket.end();
    });
    const answer = (await run(`const socket = connect("127.0.0.1:${receiving}", { allowHalfOpen: true });
      const writer = socket.writable.getWriter();
      let written = 0, last = Date.now(), stalledAt;
      const watching = (async () => {
        while (written < ${total} && stalledAt === undefined) {
          await scheduler.wait(20);
          if (Date.now() - last > ${quietMs}) { stalledAt = written; await text(connect("127.0.0.1:${going}").readable); }
        }
      })();
      while (written < ${total}) { await writer.write(new Uint8Array(${mebibyte})); written += ${mebibyte}; last = Date.now(); }
      await writer.close();
      await watching;
      return [Number(await text(socket.readable)), stalledAt];`)) as [number, number];
    expect(answer[0]).toBe(total);
    expect(answer[1]).toBeLessThan(32 * mebibyte);
  });
});

describe("blocked targets", () => {
  let careful: Hosting;
  beforeAll(async () => {
    careful = await startHosting({ privateNetworks: "origins" });
  });
  afterAll(async () => careful.close(0));
  const opening = (address: string): string => `return failure(connect("${address}").opened)`;

  test.each(["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "10.0.0.1", "169.254.169.254"])(
    "private addresses, where scripts may not: %s",
    async (host) => {
      expect(await run(opening(`${host}:5432`), careful)).toBe(
        `${failed}: it is a private address, which this installation does not allow`,
      );
    },
  );

  test("port 25 is refused", async () => {
    expect(await run(opening("127.0.0.1:25"))).toBe(`${failed}: port 25 is closed to scripts`);
  });

  test("the installation's own services, by address and by name", async () => {
    const portOf = (url: string): string => new URL(url).port;
    const { api, edge } = hosting.ready;
    for (const address of [
      `127.0.0.1:${portOf(api)}`,
      `localhost:${portOf(api)}`,
      `127.0.0.1:${portOf(edge)}`,
      `[::ffff:127.0.0.1]:${portOf(edge)}`,
      `${hosting.hostOf("using")}:${portOf(edge)}`,
    ])
      expect(await run(opening(address)), address).toBe(
        `${failed}: it is one of this installation's own services`,
      );
    expect(await run(opening(`${hosting.hostOf("using")}:443`))).toContain(
      "one of this installation's own services",
    );
  });
});

describe("limits", () => {
  test("a socket is a subrequest, and no more, however much it is used", async () => {
    expect(
      await run(`for (let i = 0; i < 40; i++) { const socket = connect("127.0.0.1:PORT.echo"); await say(socket, "x"); await socket.close(); }
        return failure(connect("127.0.0.1:PORT.echo").opened);`),
    ).toBe("Too many subrequests.");
  });

  test("a run has 32 open at a time", async () => {
    expect(
      await run(`const sockets = Array.from({ length: 32 }, () => connect("127.0.0.1:PORT.echo"));
        await Promise.all(sockets.map(({ opened }) => opened));
        const refused = await failure(connect("127.0.0.1:PORT.echo").opened);
        await sockets[0].close();
        await connect("127.0.0.1:PORT.echo").opened;
        return refused;`),
    ).toBe("More than 32 sockets of one request are open.");
  });
});

describe("scripts of customers", () => {
  const dispatcher = (outbound?: object): object => ({
    code: `export default { fetch: (request, env) => env.NS.get("acme").fetch(request) };`,
    bindings: [{ type: "dispatch_namespace", name: "NS", namespace: "customers", ...outbound }],
  });
  beforeAll(async () => {
    await hosting.createNamespace("customers");
    const code = `const plain = connect("127.0.0.1:PORT.echo"); await say(plain, "hi"); await plain.writable.close();
      const socket = connect("localhost:PORT.starting", { secureTransport: "starttls" });
      await say(socket, "please");
      const reader = socket.readable.getReader(); await reader.read(); reader.releaseLock();
      const secure = socket.startTls(); await say(secure, "secret"); await secure.writable.close();
      return [await text(plain.readable), await text(secure.readable)];`;
    await hosting.deployCustomer("customers", "acme", scriptOf(code, ""));
  });

  test("open sockets of their own", async () => {
    await hosting.deploy("dispatcher", dispatcher() as never);
    expect((await hosting.ask("dispatcher")).body).toBe('{"value":["hi","secret"]}');
  });

  test("have none when an outbound script must see their requests", async () => {
    await hosting.deploy("guard", `export default { fetch: (request) => fetch(request) };`);
    const bound = dispatcher({ outbound: { worker: { service: "guard" } } });
    await hosting.deploy("dispatcher", bound as never);
    expect((await hosting.ask("dispatcher")).body).toBe(
      '{"thrown":"connect() is not available to a script whose requests go through an outbound Worker."}',
    );
  });
});
