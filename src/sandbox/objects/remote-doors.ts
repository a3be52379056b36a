import type { Duplex } from "node:stream";
import { LRUCache } from "lru-cache";
import { entriesMax } from "../../platform/util/loading-cache.ts";
import type { DoorsElsewhere, NodeDoors } from "../gateway/doors.ts";

interface Door {
  node: NodeDoors;
  slot: number;
  joined: Set<Duplex>;
}

/** Doors to cells of other nodes. Cells have few of them, so the one that was used longest ago gets another cell. */
export class RemoteDoors implements DoorsElsewhere {
  readonly #first: number;
  /** By number, those used last at the end. */
  readonly #doors: Map<number, Door | undefined>;
  /** The nodes of calls, by token. */
  readonly #nodes = new LRUCache<string, NodeDoors>(entriesMax(10_000));

  /** `first`: the number of the first door. */
  constructor(first: number, count: number) {
    this.#first = first;
    this.#doors = new Map(Array.from({ length: count }, (_, i) => [first + i, undefined]));
  }

  /** The number of a door to a cell of a node, for the call of a token. */
  open(node: NodeDoors, slot: number, token: string): number {
    this.#nodes.set(token, node);
    const known = [...this.#doors].find(([, door]) => door?.node === node && door.slot === slot);
    const [number, before] = known ?? [...this.#doors][0]!;
    if (known === undefined) for (const socket of before?.joined ?? []) socket.destroy();
    this.#doors.delete(number);
    this.#doors.set(number, known === undefined ? { node, slot, joined: new Set() } : before);
    return number;
  }

  /** Whether the number is that of such a door. Connects it then. */
  join(number: number, from: Duplex, head: Buffer): boolean {
    const door = number < this.#first ? undefined : this.#doors.get(number);
    if (door === undefined) return false;
    door.joined.add(from);
    from.once("close", () => door.joined.delete(from));
    door.node.join(door.slot, from, head);
    return true;
  }

  nodeOf(token: string): NodeDoors | undefined {
    return this.#nodes.get(token);
  }
}
