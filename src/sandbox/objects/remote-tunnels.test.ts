import { PassThrough, type Duplex } from "node:stream";
import { expect, it } from "vitest";
import type { NodeTunnels } from "../gateway/rpc-tunnels.ts";
import { RemoteTunnelPool } from "./remote-tunnels.ts";

const nodeOf = (): NodeTunnels => ({ join: () => {}, faultOf: async () => undefined });
const join = (tunnels: RemoteTunnelPool, number: number): Duplex => {
  const socket = new PassThrough();
  expect(tunnels.join(number, socket, Buffer.alloc(0))).toBe(true);
  return socket;
};

it("an account that uses all tunnels takes none of another account, and gives up its own", () => {
  const tunnels = new RemoteTunnelPool(16, 8);
  const quiet = tunnels.open(nodeOf(), 3, { token: "quiet", accountId: "quiet" });
  const kept = join(tunnels, quiet);
  const greedy = Array.from({ length: 20 }, (_, slot) => {
    const number = tunnels.open(nodeOf(), slot, { token: `${slot}`, accountId: "greedy" });
    return join(tunnels, number);
  });
  expect(kept.destroyed).toBe(false);
  expect(greedy.filter(({ destroyed }) => !destroyed)).toHaveLength(7);
  const late = tunnels.open(nodeOf(), 1, { token: "late", accountId: "late" });
  join(tunnels, late);
  expect(greedy.filter(({ destroyed }) => !destroyed)).toHaveLength(6);
  expect(kept.destroyed).toBe(false);
});

it("calls of an account of one cell use one tunnel, also after others", () => {
  const tunnels = new RemoteTunnelPool(16, 4);
  const node = nodeOf();
  const open = (slot: number, token: string): number => tunnels.open(node, slot, { token, accountId: "a" });
  const first = open(1, "first");
  expect(open(2, "second")).not.toBe(first);
  expect(open(1, "third")).toBe(first);
  expect(tunnels.nodeOf("third")).toBe(node);
  expect(tunnels.join(15, new PassThrough(), Buffer.alloc(0))).toBe(false);
});

it("a tunnel without connections is given up before one that is used", () => {
  const tunnels = new RemoteTunnelPool(16, 2);
  const used = join(tunnels, tunnels.open(nodeOf(), 1, { token: "1", accountId: "a" }));
  const idle = tunnels.open(nodeOf(), 2, { token: "2", accountId: "a" });
  expect(tunnels.open(nodeOf(), 3, { token: "3", accountId: "a" })).toBe(idle);
  expect(used.destroyed).toBe(false);
});
