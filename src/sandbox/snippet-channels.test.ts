import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { WebSocketServer, type WebSocket } from "ws";
import { SnippetChannel } from "./gateway/channel.ts";
import { SnippetChannels } from "./snippet-channels.ts";

it("unpins the script of a channel that breaks while the cell goes on, and opens another one", async () => {
  const folder = mkdtempSync(join(tmpdir(), "selvedge-channel-"));
  const path = join(folder, "cell");
  const server = createServer();
  const sockets = new WebSocketServer({ server });
  const opened: WebSocket[] = [];
  sockets.on("connection", (socket) => opened.push(socket));
  await new Promise<void>((resolve) => server.listen(path, resolve));
  onTestFinished(() => {
    for (const socket of opened) socket.terminate();
    server.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const [unpinned, ended]: [string[], string[]] = [[], []];
  const channels = new SnippetChannels(
    {
      isDead: false,
      gateway: { begin: () => {}, end: (token) => ended.push(token) },
      openChannel: async (id, token) => SnippetChannel.open(path, id, token, "secret", () => {}),
      unpin: async (id) => unpinned.push(id),
      keep: async () => {},
    },
    10,
  );
  const first = (await channels.of("snippet")) as SnippetChannel;
  const closed = new Promise<void>((resolve) => first.onClose(resolve));
  opened[0]!.terminate();
  await closed;
  expect([unpinned, ended.length, channels.size]).toEqual([["snippet"], 1, 0]);
  const next = (await channels.of("snippet")) as SnippetChannel;
  expect([next.isOpen, next === first]).toEqual([true, false]);
  const end = once(opened[1]!, "close");
  channels.closeAll();
  await end;
  expect(unpinned).toEqual(["snippet", "snippet"]);
});
