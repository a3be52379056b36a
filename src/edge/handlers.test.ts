import { describe, expect, it } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { once } from "node:events";
import { VisitorError } from "./errors.ts";
import type { EdgeHandler, EdgeVisit } from "./handlers.ts";
import { exchange, host, startEdge, startOrigin, visit } from "./test-edge.ts";

const seenBy = (visits: EdgeVisit[]): EdgeHandler => {
  return (each) => visits.push(each) < 0;
};
const answering: EdgeHandler = ({ response }) => {
  response.end("taken");
  return true;
};

describe("a handler", () => {
  it("that takes a request answers it, and neither the next one nor the origin hears of it", async () => {
    const origin = await startOrigin((_incoming, response) => response.end("origin"));
    const after: EdgeVisit[] = [];
    const { port } = await startEdge({ originPort: origin.port, handlers: [answering, seenBy(after)] });
    expect((await visit(port)).body).toBe("taken");
    expect([after.length, origin.connections()]).toEqual([0, 0]);
  });

  it("that leaves a request leaves it whole", async () => {
    const origin = await startOrigin((incoming, response) => incoming.pipe(response));
    const visits: EdgeVisit[] = [];
    const { port, zone } = await startEdge({
      originPort: origin.port,
      handlers: [seenBy(visits), async (each) => seenBy(visits)(each)],
    });
    expect((await visit(port, { method: "POST", path: "/a?b=c" }, "body")).body).toBe("body");
    expect(visits).toHaveLength(2);
    expect(visits[0]).toMatchObject({ host, path: "/a?b=c", clientAddress: "127.0.0.1", zone });
    expect(visits[0]!.describe()).toMatchObject({ method: "POST", url: "/a?b=c", rayId: visits[0]!.ray });
  });

  it("is asked about a host that has no record, without a zone", async () => {
    const visits: EdgeVisit[] = [];
    const { port } = await startEdge({ originPort: 1, handlers: [seenBy(visits)] });
    for (const name of ["other.example", "none.example.com"])
      expect((await visit(port, { headers: { host: name } })).status).toBe(404);
    expect(visits.map((each) => [each.host, each.zone])).toEqual([
      ["other.example", undefined],
      ["none.example.com", undefined],
    ]);
  });

  it("is not asked about a paused zone, a record that is not proxied, or a malformed request", async () => {
    const visits: EdgeVisit[] = [];
    const { port, zone } = await startEdge({ originPort: 1, handlers: [seenBy(visits)] });
    zone.isPaused = true;
    expect((await visit(port)).status).toBe(503);
    zone.isPaused = false;
    zone.setHost(host, { isProxied: false, targets: [{ type: "A", content: "192.0.2.1" }] });
    expect((await visit(port)).status).toBe(421);
    expect(await exchange(port, `GET /a HTTP/1.1\r\nHost: ${host}\r\nHost: ${host}\r\n\r\n`)).toMatch(
      /^HTTP\/1\.1 400 /,
    );
    expect(visits).toEqual([]);
  });

  it.each<[what: string, handler: EdgeHandler, status: number, code: number]>([
    ["a visitor error", () => Promise.reject(new VisitorError(500, 1203, "Too long", "Stopped.")), 500, 1203],
    ["anything else", () => Promise.reject(new Error("secret")), 500, 500],
  ])("that throws %s is answered for with a page", async (_what, handler, status, code) => {
    const { port } = await startEdge({ originPort: 1, handlers: [handler] });
    const answer = await visit(port);
    expect(answer.status).toBe(status);
    expect(answer.body).toContain(`error ${code} · ray`);
    expect(answer.body).not.toContain("secret");
  });

  it("that throws in the middle of its answer breaks it off", async () => {
    const handler: EdgeHandler = async ({ response }) => {
      response.writeHead(200, { "content-length": 10 });
      await new Promise((resolve) => response.write("half", resolve));
      throw new Error("broken");
    };
    const { port } = await startEdge({ originPort: 1, handlers: [handler] });
    await expect(visit(port)).rejects.toThrow("aborted");
  });

  it("is not offered upgrades: they go to the origin", async () => {
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
