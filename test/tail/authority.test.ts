import { once } from "node:events";
import { afterAll, beforeAll, expect, it } from "vitest";
import { WebSocket } from "ws";
import type { Hosting } from "../runtime/platform.ts";
import { startTwoNodes, type TwoNodes } from "./two-nodes.ts";

/** A live log ends when its creator may no longer read it, on whichever node its watcher is. */
let nodes: TwoNodes["nodes"];
let stop: () => Promise<void>;

beforeAll(async () => {
  ({ nodes, stop } = await startTwoNodes(`export default { fetch() { return new Response("ok"); } };`));
});
afterAll(() => stop());

const policiesOf = (group: string, account: string): object[] => [
  {
    effect: "allow",
    resources: { [`com.cloudflare.api.account.${account}`]: "*" },
    permission_groups: [{ name: group }],
  },
];

/** A token that may watch, and the URL of a tail that it created. */
async function create(): Promise<{ tokenPath: string; name: string; url: URL }> {
  const [node] = nodes;
  const { account, ready } = node;
  const name = `watcher of ${Math.random()}`;
  const policies = policiesOf("Workers Tail Read", account);
  const { id, value } = (await node.call("POST", `/accounts/${account}/tokens`, { name, policies })).body
    .result as {
    id: string;
    value: string;
  };
  const asWatcher = await fetch(`${ready.api}/accounts/${account}/workers/scripts/watched/tails`, {
    method: "POST",
    headers: { authorization: `Bearer ${value}` },
  });
  const { result } = (await asWatcher.json()) as { result: { url: string } };
  return { tokenPath: `/accounts/${account}/tokens/${id}`, name, url: new URL(result.url) };
}

async function connect(url: URL, node: Hosting): Promise<WebSocket> {
  const there = new URL(url);
  there.host = new URL(node.ready.api).host;
  const socket = new WebSocket(there, "trace-v1");
  await once(socket, "open");
  return socket;
}

it.each([
  ["deleted", async ({ tokenPath }) => nodes[0].call("DELETE", tokenPath)],
  [
    "disabled",
    async ({ tokenPath, name }) =>
      nodes[0].call("PUT", tokenPath, {
        name,
        policies: policiesOf("Workers Tail Read", nodes[0].account),
        status: "disabled",
      }),
  ],
  [
    "narrowed",
    async ({ tokenPath, name }) =>
      nodes[0].call("PUT", tokenPath, { name, policies: policiesOf("Queues Read", nodes[0].account) }),
  ],
] satisfies [string, (token: { tokenPath: string; name: string }) => Promise<{ status: number }>][])(
  "a live log ends when the token that created it is %s",
  async (_, take) => {
    const open = [await create(), await create(), await create()] as const;
    const sockets = await Promise.all([connect(open[0].url, nodes[0]), connect(open[1].url, nodes[1])]);
    const closed = sockets.map(async (socket) => once(socket, "close"));
    for (const token of open) expect(await take(token)).toMatchObject({ status: 200 });
    await Promise.all(closed);
    // The URL of a tail without a watcher is refused too.
    for (const node of nodes) await expect(connect(open[2].url, node)).rejects.toThrow("404");
  },
  20_000,
);

it("a live log stays open while other tokens change", async () => {
  const mine = await create();
  const other = await create();
  const socket = await connect(mine.url, nodes[0]);
  await nodes[0].call("DELETE", other.tokenPath);
  const seen = once(socket, "message");
  await nodes[0].ask("watched");
  await seen;
  expect(socket.readyState).toBe(WebSocket.OPEN);
  socket.terminate();
});
