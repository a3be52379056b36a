import { request as httpRequest } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { RpcTunnels } from "../../../src/sandbox/gateway/rpc-tunnels.ts";
import { GatewayServer } from "../../../src/sandbox/gateway/gateway-server.ts";
import { Traffic } from "../../../src/sandbox/limits/traffic.ts";
import { type Random, oneOf, texts, value } from "./random.ts";
import { type Row, beside, answering } from "./beside.ts";

/** Requests to the gateway as from a script without its wrapper, and with the secret, as from a compromised cell. */
export async function attackGateway(
  folder: string,
  count: number,
  next: Random,
  hasSecret: boolean,
): Promise<Row> {
  const path = join(folder, `gateway-${hasSecret}.sock`);
  const gateway = new GatewayServer("the-secret", new Traffic(), () => {}, {
    tunnels: new RpcTunnels(),
    slot: 0,
  });
  await gateway.listen(path);
  gateway.begin("innocent", answering("innocent"));
  gateway.begin("own", answering("own"));
  const names = [
    "run",
    "binding",
    "dispatch",
    "outbound",
    "child",
    "control",
    "outcome",
    "channel",
    "event",
    "pass",
    "metadata",
    "object",
  ];
  const head = (): string => {
    const target = oneOf(next, [
      "http://a.example/",
      "http://gateway/dispatch",
      "http://gateway/nested",
      "http://gateway/script/%ff",
      "http://gateway/object",
      "http://gateway/object-begin",
      "http://gateway/object-end",
      "http://gateway/object-fault",
      "objects-0",
      "objects-0.the-secret",
      "/",
      "*",
      "x",
    ]);
    let text = `${oneOf(next, ["GET", "POST", "HEAD", "CONNECT", "TRACE", "G\0T"])} ${target} HTTP/1.1\r\n`;
    if (next(2) === 0) text += "x-selvedge-run: own\r\n";
    if (hasSecret && next(2) === 0)
      text += "x-selvedge-control: the-secret\r\nx-selvedge-outcome: the-secret\r\n";
    if (hasSecret && next(3) === 0) {
      const child = Object.fromEntries(
        ["child", "run", "binding", "options", "outbound", "id"].map((name) => [name, value(next)]),
      );
      text += `x-selvedge-child: ${encodeURIComponent(JSON.stringify(child))}\r\n`;
    }
    for (let i = next(5); i > 0; i--) {
      const given = oneOf(next, texts).replaceAll(/[\0\r\n]/g, next(10) === 0 ? "\0" : "");
      text += `x-selvedge-${oneOf(next, names)}: ${next(2) === 0 ? given : encodeURIComponent(given.toWellFormed())}\r\n`;
    }
    if (next(8) === 0) text += "connection: upgrade\r\nupgrade: websocket\r\n";
    return `${text}${oneOf(next, ["", "content-length: 3\r\n", "transfer-encoding: chunked\r\n", "expect: x\r\n"])}\r\n${oneOf(next, ["", "abc", "3\r\nabc\r\n0\r\n\r\n"])}`;
  };
  const send = (): Promise<void> =>
    new Promise((resolve) => {
      const socket = connect(path);
      socket
        .on("error", () => {})
        .on("close", () => resolve())
        .resume();
      socket.setTimeout(20, () => socket.destroy());
      socket.end(Buffer.from(head(), "latin1"));
    });
  const row = await beside(
    hasSecret ? "gateway, with the cell's secret" : "gateway, as a script",
    count,
    async () => {
      for (let at = 0; at < count; at += 20)
        await Promise.all(Array.from({ length: Math.min(20, count - at) }, send));
    },
    async () => (await ask(path, { "x-selvedge-run": "innocent" })) === "innocent",
  );
  gateway.close();
  return row;
}

export const ask = (socketPath: string, headers: Record<string, string>): Promise<string> =>
  new Promise((resolve, reject) => {
    const request = httpRequest(
      { socketPath, path: "http://site.example/", headers, agent: false },
      (answer) => {
        let text = "";
        answer.on("data", (chunk: Buffer) => (text += chunk.toString())).on("end", () => resolve(text));
      },
    );
    request.on("error", reject).end();
  });
