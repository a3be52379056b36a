import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import { request as requestTls } from "node:https";
import { connect } from "node:net";
import { connect as connectTls } from "node:tls";
import { decode, encode, type Packet } from "dns-packet";
import { WebSocket } from "ws";
import { nextMessage } from "../../runtime/platform.ts";
import type { Target } from "../target.ts";

const visitMs = 30_000;

/** Ordinary requests to each listener. Each rejects if the response is wrong or late. */
export function visitsOf(target: Target, zone: string): Record<Visited, () => Promise<void>> {
  const { ready } = target.started;
  const host = `echo.${zone}`;
  const dnsPort = Number(ready.dns.split(":").at(-1));
  const tls = new URL(ready.edge_tls!);
  const question = encode({ type: "query", id: 7, questions: [{ type: "A", name: host }] });
  const checkAnswer = (packet: Packet): void => assert.equal(packet.answers?.length, 1);
  return {
    async api() {
      assert.equal((await target.call("GET", "/user/tokens/verify")) !== null, true);
    },
    async tail() {
      const path = `/accounts/${target.account}/workers/scripts/echo/tails`;
      const { id, url } = (await target.call("POST", path, {})) as { id: string; url: string };
      const socket = new WebSocket(
        url.replace(/^wss?:\/\/[^/]+/, ready.api.replace(/^http(:\/\/[^/]+).*/, "ws$1")),
        "trace-v1",
      );
      await inTime(once(socket, "open"));
      socket.terminate();
      await target.call("DELETE", `${path}/${id}`).catch(() => {});
    },
    async edge() {
      const { status, body } = await target.askHost(host, "/", { method: "POST", body: "sent" });
      assert.deepEqual([status, body], [200, "sent"]);
      const scripted = await target.ask("echo", "/", { method: "POST", body: "sent" });
      assert.deepEqual([scripted.status, scripted.body], [200, "sent"]);
    },
    async webSocket() {
      for (const to of [host, target.hostOf("echo")]) {
        const socket = target.connect("echo", "/socket", to);
        const message = nextMessage(socket);
        await inTime(once(socket, "open"));
        socket.send("sent");
        assert.equal(await inTime(message), "sent");
        socket.terminate();
      }
    },
    async tls() {
      const options = { host: "127.0.0.1", port: tls.port, servername: host, ca: target.authority };
      const asked = requestTls({ ...options, headers: { host }, agent: false });
      asked.end();
      const [answer] = (await inTime(once(asked, "response"))) as [IncomingMessage];
      assert.equal(answer.statusCode, 200);
      answer.resume();
      await inTime(once(answer, "close"));
    },
    async http2() {
      const socket = connectTls({
        host: "127.0.0.1",
        port: Number(tls.port),
        servername: host,
        ca: target.authority,
        ALPNProtocols: ["h2"],
      });
      await inTime(once(socket, "secureConnect"));
      const session = connectHttp2(`https://${host}`, { createConnection: () => socket });
      const stream = session.request({ ":path": "/" });
      const [headers] = (await inTime(once(stream, "response"))) as [Record<string, unknown>];
      assert.equal(headers[":status"], 200);
      session.destroy();
    },
    async dnsUdp() {
      const socket = createSocket("udp4");
      // A datagram may be lost.
      const timer = setInterval(() => socket.send(question, dnsPort, "127.0.0.1"), 500);
      socket.send(question, dnsPort, "127.0.0.1");
      const [answer] = (await inTime(once(socket, "message"))) as [Buffer];
      clearInterval(timer);
      socket.close();
      checkAnswer(decode(answer));
    },
    async dnsTcp() {
      const socket = connect(dnsPort, "127.0.0.1");
      const length = Buffer.alloc(2);
      length.writeUInt16BE(question.length);
      socket.write(Buffer.concat([length, question]));
      const [answer] = (await inTime(once(socket, "data"))) as [Buffer];
      socket.destroy();
      checkAnswer(decode(answer.subarray(2)));
    },
    async metrics() {
      assert.equal(await target.uncaught(), 0);
    },
  };
}
type Visited = "api" | "tail" | "edge" | "webSocket" | "tls" | "http2" | "dnsUdp" | "dnsTcp" | "metrics";

/** A listener without a response is a failure and must not stall the test. */
async function inTime<T>(work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error("no answer in time")), visitMs);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
