import { connect } from "node:net";
import type { Duplex } from "node:stream";
import { LRUCache } from "lru-cache";
import { endWith } from "../../platform/util/raw-http.ts";
import { within } from "../../platform/util/ends-within.ts";
import type { ObjectRefusal } from "../errors.ts";
import { heldAt, type Gate } from "../connections/held-socket.ts";
import { rpcTarget as target } from "../process/object-config.ts";
import { entriesMax } from "../../platform/util/loading-cache.ts";

const faultMs = 1000;
const waitingMax = 10_000;

/** As `rpcHost`. */
const pattern = /^objects-(\d{1,4})$/;

/** The cells of objects of another node. */
export interface NodeTunnels {
  /** Joins a cell with the cell of a slot there. */
  join(slot: number, from: Duplex, head: Buffer): void;
  faultOf(token: string): Promise<ObjectRefusal | undefined>;
}

/** Tunnels to cells of other nodes. */
export interface RemoteTunnels {
  /** Whether the number is that of such a tunnel. Connects it then. */
  join(number: number, from: Duplex, head: Buffer): boolean;
  /** The node of a call, by its token. */
  nodeOf(token: string): NodeTunnels | undefined;
  /** The number of a tunnel to a cell of a node, for a call of an account. */
  open(node: NodeTunnels, slot: number, call: { token: string; accountId: string }): number;
}

/**
 * Joins cells that call objects with the cells of the objects. workerd speaks Cap'n Proto over the joined sockets; each
 * call in it needs a token of the gateway (gateway/object-calls.ts).
 */
export class RpcTunnels {
  /** The sockets of the cells of objects, by slot. */
  readonly #cells = new Map<number, { path: string; gate?: Gate | undefined }>();

  /** Why calls ended with their cells, by token. */
  readonly #faults = new LRUCache<string, ObjectRefusal>(entriesMax(10_000));
  readonly #waiting = new Map<string, (fault: ObjectRefusal) => void>();

  /** In an edge process: the tunnels of main, which has the cells of objects. */
  ofMain: Pick<RpcTunnels, "faultOf" | "join"> | undefined;

  /** Tunnels to other nodes; undefined if there are none. */
  readonly remote: RemoteTunnels | undefined;

  constructor(remote?: RemoteTunnels) {
    this.remote = remote;
  }

  /** Notes why a call ended with its cell. */
  noteFault(token: string, fault: ObjectRefusal): void {
    this.#faults.set(token, fault);
    this.#waiting.get(token)?.(fault);
  }

  /** Why a call's connection broke. Waits up to `faultMs`, because the end of the process is noticed slightly later. */
  async faultOf(token: string): Promise<ObjectRefusal | undefined> {
    if (this.ofMain !== undefined) return this.ofMain.faultOf(token);
    const node = this.remote?.nodeOf(token);
    if (node !== undefined) return node.faultOf(token);
    const known = this.#faults.get(token);
    if (known !== undefined || this.#waiting.size >= waitingMax) return known;
    const noted = new Promise<ObjectRefusal>((resolve) => this.#waiting.set(token, resolve));
    const fault = await within(faultMs, noted).catch(() => undefined);
    this.#waiting.delete(token);
    return fault;
  }

  open(slot: number, path: string, gate?: Gate): void {
    this.#cells.set(slot, { path, gate });
  }

  close(slot: number): void {
    this.#cells.delete(slot);
  }

  /** Connects a cell, which sent a CONNECT for `host`. */
  join(host: string, from: Duplex, head: Buffer): void {
    if (this.ofMain !== undefined) {
      this.ofMain.join(host, from, head);
      return;
    }
    const slot = pattern.exec(host)?.[1];
    if (this.remote?.join(Number(slot ?? -1), from, head) === true) return;
    const cell = slot === undefined ? undefined : this.#cells.get(Number(slot));
    if (cell === undefined) {
      endWith(from, "HTTP/1.1 403 Forbidden\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
      return;
    }
    const to = heldAt(cell.gate, connect(cell.path));
    to.on("error", () => from.destroy());
    from.on("error", () => to.destroy());
    to.on("close", () => from.destroy());
    from.on("close", () => to.destroy());
    to.write(`CONNECT ${target} HTTP/1.1\r\nhost: ${target}\r\n\r\n`);
    if (head.length > 0) to.write(head);
    from.pipe(to);
    to.pipe(from);
  }
}
