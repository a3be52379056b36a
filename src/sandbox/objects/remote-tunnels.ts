import type { Duplex } from "node:stream";
import { LRUCache } from "lru-cache";
import { entriesMax } from "../../platform/util/loading-cache.ts";
import type { RemoteTunnels, NodeTunnels } from "../gateway/rpc-tunnels.ts";

interface Tunnel {
  node: NodeTunnels;
  slot: number;
  accountId: string;
  joined: Set<Duplex>;
}

/**
 * Tunnels to cells of other nodes. Cells have few of them. When all are used, the account with most of them gives one up: the
 * one that it has used longest ago.
 */
export class RemoteTunnelPool implements RemoteTunnels {
  readonly #first: number;
  /** By number, those used last at the end. */
  readonly #tunnels: Map<number, Tunnel | undefined>;
  /** The nodes of calls, by token. */
  readonly #nodes = new LRUCache<string, NodeTunnels>(entriesMax(10_000));

  /** `first`: the number of the first tunnel. */
  constructor(first: number, count: number) {
    this.#first = first;
    this.#tunnels = new Map(Array.from({ length: count }, (_, i) => [first + i, undefined]));
  }

  /** The number of a tunnel to a cell of a node, for a call of an account. */
  open(node: NodeTunnels, slot: number, { token, accountId }: { token: string; accountId: string }): number {
    this.#nodes.set(token, node);
    const isOpen = (tunnel: Tunnel | undefined): boolean =>
      tunnel?.node === node && tunnel.slot === slot && tunnel.accountId === accountId;
    const known = [...this.#tunnels].find(([, tunnel]) => isOpen(tunnel));
    const [number, before] = known ?? this.#free();
    if (known === undefined) for (const socket of before?.joined ?? []) socket.destroy();
    this.#tunnels.delete(number);
    this.#tunnels.set(number, known === undefined ? { node, slot, accountId, joined: new Set() } : before);
    return number;
  }

  /** Whether the number is that of such a tunnel. Connects it then. */
  join(number: number, from: Duplex, head: Buffer): boolean {
    const tunnel = number < this.#first ? undefined : this.#tunnels.get(number);
    if (tunnel === undefined) return false;
    tunnel.joined.add(from);
    from.once("close", () => tunnel.joined.delete(from));
    tunnel.node.join(tunnel.slot, from, head);
    return true;
  }

  nodeOf(token: string): NodeTunnels | undefined {
    return this.#nodes.get(token);
  }

  /** An unused tunnel, else one of the account with most. */
  #free(): [number, Tunnel | undefined] {
    const all = [...this.#tunnels];
    const unused = all.find(([, tunnel]) => tunnel === undefined);
    if (unused !== undefined) return unused;
    const byAccount = Map.groupBy(all, ([, tunnel]) => tunnel!.accountId);
    const most = [...byAccount.values()].reduce((one, other) => (other.length > one.length ? other : one));
    return most.find(([, tunnel]) => tunnel!.joined.size === 0) ?? most[0]!;
  }
}
