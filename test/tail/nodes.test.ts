import { once } from "node:events";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { WebSocket } from "ws";
import { startTwoNodes, type TwoNodes } from "./two-nodes.ts";

/** On nodes with one database, a tail shows the runs of all nodes. */
let nodes: TwoNodes["nodes"];
let stop: () => Promise<void>;

beforeAll(async () => {
  ({ nodes, stop } = await startTwoNodes(
    `export default { fetch(request) { console.log("seen"); return new Response("ok"); } };`,
  ));
});
afterAll(() => stop());

async function make(): Promise<string> {
  const path = `/accounts/${nodes[0].account}/workers/scripts/watched/tails`;
  return String((await nodes[0].call("POST", path, {})).body.result.url);
}
async function connect(url: string): Promise<{ urls: string[]; socket: WebSocket }> {
  const socket = new WebSocket(url, "trace-v1");
  const urls: string[] = [];
  socket.on("message", (data: Buffer) => {
    const { event, logs } = JSON.parse(data.toString()) as {
      event: { request: { url: string } };
      logs: { message: string[] }[];
    };
    urls.push(`${new URL(event.request.url).pathname} ${logs[0]?.message[0]}`);
  });
  await once(socket, "open");
  return { urls, socket };
}
/** Runs on the other node are not shown until that node knows of the tail. */
async function seesBoth(urls: string[], name: string): Promise<void> {
  await vi.waitFor(
    async () => {
      await Promise.all(nodes.map(async (node, i) => node.ask("watched", `/${name}-${i}`)));
      expect(urls).toEqual(expect.arrayContaining([`/${name}-0 seen`, `/${name}-1 seen`]));
    },
    { timeout: 20_000, interval: 200 },
  );
}

it("a watcher sees the runs of every node", async () => {
  const { urls, socket } = await connect(await make());
  await seesBoth(urls, "made-here");
  socket.close();
  const scriptId = nodes[1].services.scripts.get({ accountId: nodes[1].account }, "watched").id;
  const isWatched = (): boolean[] =>
    nodes.map(({ services, account }) => services.tails.isWatched({ accountId: account, scriptId }));
  await vi.waitFor(() => expect(isWatched()).toEqual([false, false]), 20_000);
});

it("accepts the watcher on another node than the tail's creator, and ends it on all nodes", async () => {
  const url = new URL(await make());
  url.host = new URL(nodes[1].ready.api).host;
  const { urls, socket } = await connect(url.href);
  await seesBoth(urls, "made-there");
  const [tail] = nodes[1].services.tails.all();
  const closed = once(socket, "close");
  await nodes[0].call("DELETE", `/accounts/${nodes[0].account}/workers/scripts/watched/tails/${tail!.id}`);
  expect((await closed)[0]).toBe(1000);
});
