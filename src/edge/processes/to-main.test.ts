import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, request as httpRequest, type IncomingMessage, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { requestPath } from "../../platform/processes/protocol.ts";
import type { VisitorError } from "../http/errors.ts";
import { edgeDefaults } from "../http/settings.ts";
import { AddressPolicy } from "../origin/address-policy.ts";
import { Origins } from "../origin/origins.ts";
import type { EdgeHttpRequest } from "../request/handlers.ts";
import { ToMain } from "./to-main.ts";
import { restoreVisitor } from "./visitor-facts.ts";

/** The port of an edge process that passes all requests to main. */
async function start(main: RequestListener, bodyBytesMax: number): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), "selvedge-test-"));
  const behind = createServer(main);
  await once(behind.listen(requestPath(folder)), "listening");
  const settings = { ...edgeDefaults, bodyBytesMax };
  const toMain = new ToMain(folder, settings, new Origins(settings, new AddressPolicy("all")), undefined);
  const { handler } = toMain.when(() => true);
  const edge = createServer((request, response) => {
    Promise.resolve(handler({ request, response } as EdgeHttpRequest)).catch((error: VisitorError) =>
      response.writeHead(error.status, { connection: "close" }).end(),
    );
  });
  await once(edge.listen(0, "127.0.0.1"), "listening");
  onTestFinished(async () => {
    edge.close();
    edge.closeAllConnections();
    await toMain.close();
    behind.close();
    behind.closeAllConnections();
    rmSync(folder, { recursive: true });
  });
  return (edge.address() as AddressInfo).port;
}

it("a body in chunks that is too large is refused as such, not as a fault of main", async () => {
  const port = await start((request) => void request.resume(), 1000);
  const sent = httpRequest({ port, method: "POST", headers: { "transfer-encoding": "chunked" } });
  sent.on("error", () => {}).write("x".repeat(800));
  sent.write("x".repeat(800));
  const [answer] = (await once(sent, "response")) as [IncomingMessage];
  expect(answer.statusCode).toBe(413);
});

it("a visitor can forge neither its facts nor a trace", async () => {
  let seen: Pick<IncomingMessage, "rawHeaders" | "headers"> | undefined;
  let address: string | undefined;
  const port = await start((request, response) => {
    restoreVisitor(request);
    seen = request;
    address = request.socket.remoteAddress;
    response.end();
  }, 1000);
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
