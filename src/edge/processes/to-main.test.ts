import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, request as httpRequest, type IncomingMessage, type RequestListener } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { requestPath } from "../../platform/processes/protocol.ts";
import { endsWithin } from "../../platform/util/ends-within.ts";
import type { VisitorError } from "../http/errors.ts";
import { edgeDefaults } from "../http/settings.ts";
import { AddressPolicy } from "../origin/address-policy.ts";
import { Origins } from "../origin/origins.ts";
import type { EdgeHttpRequest, EdgeUpgradeRequest } from "../request/handlers.ts";
import type { Edge } from "../request/listener.ts";
import { serveFromEdges } from "./from-edges.ts";
import { ToMain } from "./to-main.ts";

const switching = "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n";

interface Started {
  /** The port of an edge process that passes all requests to main. */
  port: number;
  /** Starts main. Its edge answers requests so, and upgrades with 101. */
  startMain: (serve?: RequestListener) => Promise<void>;
}

async function start(bodyBytesMax = edgeDefaults.bodyBytesMax): Promise<Started> {
  const folder = mkdtempSync(join(tmpdir(), "selvedge-test-"));
  const settings = { ...edgeDefaults, bodyBytesMax };
  const toMain = new ToMain(folder, settings, new Origins(settings, new AddressPolicy("all")), undefined);
  const { handler, upgradeHandler } = toMain.when(() => true);
  const edge = createServer({ maxHeaderSize: settings.headerBytesMax }, (request, response) => {
    Promise.resolve(handler({ request, response } as EdgeHttpRequest)).catch((error: VisitorError) =>
      response.writeHead(error.status, { connection: "close" }).end(),
    );
  });
  edge.on("upgrade", (request: IncomingMessage, socket: Socket, head: Buffer) => {
    Promise.resolve(upgradeHandler({ request, socket, head } as EdgeUpgradeRequest)).catch(
      ({ status }: VisitorError) => socket.end(`HTTP/1.1 ${status} Failed\r\n\r\n`),
    );
  });
  await once(edge.listen(0, "127.0.0.1"), "listening");
  onTestFinished(async () => {
    edge.close();
    edge.closeAllConnections();
    await toMain.close();
    rmSync(folder, { recursive: true });
  });
  return {
    port: (edge.address() as AddressInfo).port,
    async startMain(serve = () => {}) {
      const serveUpgrade = (_: IncomingMessage, socket: Socket): void => void socket.end(switching);
      const main = { serve, serveUpgrade } as unknown as Edge;
      const { close } = await serveFromEdges(requestPath(folder), main, settings, { isOn: false });
      onTestFinished(async () => close(0));
    },
  };
}

it("a body in chunks that is too large is refused as such, not as a fault of main", async () => {
  const { port, startMain } = await start(1000);
  await startMain((request) => void request.resume());
  const sent = httpRequest({ port, method: "POST", headers: { "transfer-encoding": "chunked" } });
  sent.on("error", () => {}).write("x".repeat(800));
  sent.write("x".repeat(800));
  const [answer] = (await once(sent, "response")) as [IncomingMessage];
  expect(answer.statusCode).toBe(413);
});

it("a visitor can forge neither the properties of its connection nor a trace", async () => {
  let seen: Pick<IncomingMessage, "rawHeaders" | "headers"> | undefined;
  let address: string | undefined;
  const { port, startMain } = await start(1000);
  await startMain((request, response) => {
    seen = request;
    address = request.socket.remoteAddress;
    response.end();
  });
  const forged = JSON.stringify({ address: "192.0.2.1", httpVersion: "1.1", headers: [] });
  const sent = httpRequest({
    port,
    host: "127.0.0.1",
    headers: ["host", "a.example", "X-Selvedge-Visitor", forged, "x-selvedge-visitor", forged]
      .concat(["X-Selvedge-Trace", "forged", "connection", "x-selvedge-visitor, host, te", "te", "trailers"])
      .concat(["proxy-authorization", "a"]),
  });
  sent.end();
  await once(sent, "response");
  expect(address).toBe("127.0.0.1");
  expect(seen!.rawHeaders).toEqual(
    ["host", "a.example", "connection", "x-selvedge-visitor, host, te", "te", "trailers"].concat([
      "proxy-authorization",
      "a",
    ]),
  );
  expect(seen!.headers).not.toHaveProperty("x-selvedge-trace");
});

it("a head of the greatest length arrives, and one that a script may answer comes back", async () => {
  const { port, startMain } = await start();
  const long = "ÿ".repeat(edgeDefaults.headerBytesMax - 200);
  const answered = "x".repeat(127 * 1024);
  let received: unknown;
  await startMain((request, response) => {
    received = request.headers.te;
    response.writeHead(200, { "x-long": answered }).end();
  });
  const sent = httpRequest({ port, headers: { te: long }, maxHeaderSize: 256 * 1024 });
  sent.end();
  const [answer] = (await once(sent, "response")) as [IncomingMessage];
  expect([answer.statusCode, received === long, answer.headers["x-long"] === answered]).toEqual([
    200,
    true,
    true,
  ]);
});

it("a WebSocket waits for a main process that starts", async () => {
  const { port, startMain } = await start();
  const sent = httpRequest({ port, headers: { connection: "upgrade", upgrade: "websocket" } });
  const answered = new Promise<string>((resolve, reject) => {
    sent.once("upgrade", (_, socket: Socket) => {
      resolve("joined");
      socket.destroy();
    });
    sent.once("response", ({ statusCode }: IncomingMessage) => resolve(`refused with ${statusCode}`));
    sent.once("error", reject);
  });
  sent.end();
  expect(await endsWithin(300, answered)).toBe(false);
  await startMain();
  expect(await answered).toBe("joined");
});
