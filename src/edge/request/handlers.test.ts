import { describe, expect, it } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { once } from "node:events";
import { VisitorError } from "../http/errors.ts";
import type { EdgeHandler, EdgeHttpRequest } from "./handlers.ts";
import { exchangeBytes, host, startEdge, startOrigin, requestEdge } from "./test-edge.ts";

const seenBy = (edgeRequests: EdgeHttpRequest[]): EdgeHandler => {
  return (each) => edgeRequests.push(each) < 0;
};
const answering: EdgeHandler = ({ response }) => {
  response.end("taken");
  return true;
};

describe("a handler", () => {
  it("that takes a request answers it; later handlers and the origin do not get it", async () => {
    const origin = await startOrigin((_incoming, response) => response.end("origin"));
    const after: EdgeHttpRequest[] = [];
    const { port } = await startEdge({ originPort: origin.port, handlers: [answering, seenBy(after)] });
    expect((await requestEdge(port)).body).toBe("taken");
    expect([after.length, origin.connections()]).toEqual([0, 0]);
  });

  it("that passes leaves the request unchanged", async () => {
    const origin = await startOrigin((incoming, response) => incoming.pipe(response));
    const edgeRequests: EdgeHttpRequest[] = [];
    const { port, zone } = await startEdge({
      originPort: origin.port,
      handlers: [seenBy(edgeRequests), async (each) => seenBy(edgeRequests)(each)],
    });
    expect((await requestEdge(port, { method: "POST", path: "/a?b=c" }, "body")).body).toBe("body");
    expect(edgeRequests).toHaveLength(2);
    expect(edgeRequests[0]).toMatchObject({ host, path: "/a?b=c", clientAddress: "127.0.0.1", zone });
    expect(edgeRequests[0]!.describe()).toMatchObject({
      method: "POST",
      url: "/a?b=c",
      rayId: edgeRequests[0]!.ray,
    });
  });

  it("is called for a host without a record, with no zone", async () => {
    const edgeRequests: EdgeHttpRequest[] = [];
    const { port } = await startEdge({ originPort: 1, handlers: [seenBy(edgeRequests)] });
    for (const name of ["other.example", "none.example.com"])
      expect((await requestEdge(port, { headers: { host: name } })).status).toBe(404);
    expect(edgeRequests.map((each) => [each.host, each.zone])).toEqual([
      ["other.example", undefined],
      ["none.example.com", undefined],
    ]);
  });

  it("is not called for a paused zone, an unproxied record, or a malformed request", async () => {
    const edgeRequests: EdgeHttpRequest[] = [];
    const { port, zone } = await startEdge({ originPort: 1, handlers: [seenBy(edgeRequests)] });
    zone.isPaused = true;
    expect((await requestEdge(port)).status).toBe(503);
    zone.isPaused = false;
    zone.setHost(host, { isProxied: false, targets: [{ type: "A", content: "192.0.2.1" }] });
    expect((await requestEdge(port)).status).toBe(421);
    expect(await exchangeBytes(port, `GET /a HTTP/1.1\r\nHost: ${host}\r\nHost: ${host}\r\n\r\n`)).toMatch(
      /^HTTP\/1\.1 400 /,
    );
    expect(edgeRequests).toEqual([]);
  });

  it.each<[what: string, handler: EdgeHandler, status: number, code: number]>([
    ["a visitor error", () => Promise.reject(new VisitorError(500, 1203, "Too long", "Stopped.")), 500, 1203],
    ["anything else", () => Promise.reject(new Error("secret")), 500, 500],
  ])("that throws %s causes an error page", async (_what, handler, status, code) => {
    const { port } = await startEdge({ originPort: 1, handlers: [handler] });
    const answer = await requestEdge(port);
    expect(answer.status).toBe(status);
    expect(answer.body).toContain(`error ${code} · ray`);
    expect(answer.body).not.toContain("secret");
  });

  it("that throws during its response aborts it", async () => {
    const handler: EdgeHandler = async ({ response }) => {
      response.writeHead(200, { "content-length": 10 });
      await new Promise((resolve) => response.write("half", resolve));
      throw new Error("broken");
    };
    const { port } = await startEdge({ originPort: 1, handlers: [handler] });
    await expect(requestEdge(port)).rejects.toThrow("aborted");
  });

  it("is not called for upgrades, which go to the origin", async () => {
    const origin = await startOrigin((_incoming, response) => response.end());
    const sockets = new WebSocketServer({ server: origin.server });
    sockets.on("connection", (socket) => socket.send("from the origin"));
    const { port } = await startEdge({ originPort: origin.port, handlers: [answering] });
    const visitor = new WebSocket(`ws://127.0.0.1:${port}`, { headers: { host } });
    const [message] = (await once(visitor, "message")) as [Buffer];
    expect(message.toString()).toBe("from the origin");
    visitor.terminate();
    sockets.close();
  });
});
