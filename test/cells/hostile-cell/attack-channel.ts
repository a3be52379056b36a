import { createServer as createHttpServer } from "node:http";
import { finished } from "node:stream/promises";
import { join } from "node:path";
import { WebSocketServer, type WebSocket } from "ws";
import { SnippetChannel, ChannelError } from "../../../src/sandbox/gateway/channel.ts";
import { CollectedResponse } from "../../../src/workers/runtime/collected-response.ts";
import { type Random, oneOf, texts, value } from "./random.ts";
import { type Row, beside, answering } from "./beside.ts";

/** A server on a cell's socket that accepts WebSockets only. */
export async function speaking(
  path: string,
  onSocket: (socket: WebSocket) => void,
): Promise<{ close(): void }> {
  const server = createHttpServer();
  const sockets = new WebSocketServer({ server, perMessageDeflate: false });
  sockets.on("connection", (socket) => {
    socket.on("error", () => {});
    onSocket(socket);
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  return {
    close() {
      for (const socket of sockets.clients) socket.terminate();
      server.close();
    },
  };
}

export const visit = { method: "GET", url: "https://site.example/", headers: [], cf: "{}" };

/** Resolves with the outcome of a run. */
export async function visitOver(channel: SnippetChannel): Promise<string> {
  const response = new CollectedResponse(1e6);
  try {
    const thrown = await channel.run(visit, { response, headers: (raw) => [...raw] }, answering("origin"));
    if (thrown !== undefined) return `threw ${thrown.message}`;
    await finished(response).catch(() => {});
    return response.body.toString();
  } catch (error) {
    if (error instanceof ChannelError) return "broke off";
    throw error;
  }
}

export async function attackChannel(folder: string, count: number, next: Random): Promise<Row> {
  let sent = 0;
  const isMore = (): boolean => sent < count;
  const wrong = (run: string): string | Buffer => {
    sent++;
    const message: Record<string, unknown> = {
      type: oneOf(next, ["fetch", "answer", "threw", "x"]),
      run: next(6) === 0 ? value(next) : run,
    };
    for (const name of [
      "id",
      "method",
      "url",
      "headers",
      "status",
      "statusText",
      "from",
      "name",
      "message",
      "stack",
    ])
      if (next(3) > 0) message[name] = value(next);
    if (next(2) === 0)
      Object.assign(message, {
        id: next(3),
        method: "GET",
        url: "https://a.example/",
        headers: [],
        status: 200,
        statusText: "",
      });
    const json = Buffer.from(JSON.stringify(message));
    const length = Buffer.alloc(4);
    length.writeUInt32BE(next(4) === 0 ? next(2 ** 32) : json.length);
    return oneOf<string | Buffer>(next, [
      json.toString(),
      json.toString(),
      Buffer.concat([length, json, Buffer.alloc(next(100))]),
      oneOf(next, texts),
      Buffer.alloc(next(5)),
    ]);
  };
  const [hostile, honest] = [join(folder, "hostile.sock"), join(folder, "honest.sock")];
  const bad = await speaking(hostile, (socket) => {
    socket.on("message", (data: Buffer) => {
      for (const { run } of JSON.parse(data.toString()) as { run?: string }[])
        if (run !== undefined) for (let i = 0; i < 10; i++) socket.send(wrong(run));
    });
  });
  const good = await speaking(honest, (socket) => {
    socket.on("message", (data: Buffer) => {
      for (const { run } of JSON.parse(data.toString()) as { run?: string }[]) {
        const body = Buffer.from("innocent");
        const json = Buffer.from(
          JSON.stringify({ type: "answer", run, status: 200, statusText: "", headers: [] }),
        );
        const length = Buffer.alloc(4);
        length.writeUInt32BE(json.length);
        socket.send(Buffer.concat([length, json, body]));
      }
    });
  });
  const open = async (path: string): Promise<SnippetChannel> =>
    (await SnippetChannel.open(path, "s", "channel", "secret", () => {})) as SnippetChannel;
  const innocent = await open(honest);
  const row = await beside(
    "channel of a snippet",
    count,
    async () => {
      let channel = await open(hostile);
      while (isMore()) {
        if (!channel.isOpen) channel = await open(hostile);
        const visits = Promise.all([visitOver(channel), visitOver(channel)]);
        await Promise.race([visits, new Promise((resolve) => setTimeout(resolve, 20))]);
        // Runs without an answer end with the channel.
        channel.close();
        await visits;
      }
    },
    async () => (await visitOver(innocent)) === "innocent",
  );
  innocent.close();
  bad.close();
  good.close();
  return row;
}
