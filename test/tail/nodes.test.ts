import { once } from "node:events";
import { Client } from "pg";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { WebSocket } from "ws";
import { startTwoNodes, type TwoNodes } from "./two-nodes.ts";

/** On nodes with one database, a tail shows the runs of all nodes. */
let nodes: TwoNodes["nodes"];
let databaseUrl: string;
let stop: () => Promise<void>;

beforeAll(async () => {
  ({ nodes, databaseUrl, stop } = await startTwoNodes(
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
    { interval: 200 },
  );
}

it("a watcher sees the runs of every node", async () => {
  const { urls, socket } = await connect(await make());
  await seesBoth(urls, "made-here");
  socket.close();
  const scriptId = nodes[1].services.scripts.get({ accountId: nodes[1].account }, "watched").id;
  const isWatched = (): boolean[] =>
    nodes.map(({ services, account }) => services.tails.isWatched({ accountId: account, scriptId }));
  await vi.waitFor(() => expect(isWatched()).toEqual([false, false]));
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

it("keeps a watcher that connects while its node reads the tails, and no tail whose watcher left", async () => {
  const urls = (await Promise.all([make(), make()])).map((each) => new URL(each));
  for (const url of urls) url.host = new URL(nodes[1].ready.api).host;
  // Claims of these tails wait until the transaction ends.
  const database = new Client(databaseUrl);
  await database.connect();
  await database.query("begin");
  await database.query("select 1 from tails for update");
  const connecting = connect(urls[0]!.href);
  const leaving = new WebSocket(urls[1]!, "trace-v1").on("error", () => {});
  const claims = async () => (await database.query("select 1 from pg_locks where not granted")).rowCount;
  await vi.waitFor(async () => expect(await claims()).toBe(2));
  leaving.terminate();
  await make();
  const known = (): number => [...nodes[1].services.tails.all()].length;
  await vi.waitFor(() => expect(known()).toBe(3));
  await database.query("commit");
  await database.end();
  await vi.waitFor(() => expect(known()).toBe(2));
  const watcher = await connecting;
  await seesBoth(watcher.urls, "while-reading");
  watcher.socket.close();
});
