import type { IncomingMessage } from "node:http";
import { NodeAbsent } from "../../../platform/process-calls/node-transport.ts";
import { ObjectRefusal } from "../../../sandbox/errors.ts";
import { connectionLost, overloadedCells } from "../../../sandbox/objects/faults.ts";
import type { ObjectGrant, ObjectRoute } from "../../../sandbox/protocol.ts";
import type { RunHooks } from "../../../sandbox/gateway/run-hooks.ts";
import { isForCallers } from "../../call-failures.ts";
import type { ObjectCall, ObjectGate } from "../../runtime/object-gate.ts";
import { NodeObjects, type NodeParts } from "./node-objects.ts";
import type { FromNode } from "./passed-calls.ts";

/** The leases of nodes on shards of objects (platform/object-shards/lease.ts). */
export interface Owners {
  owns(namespace: string): boolean;
  addressOf(namespace: string): { id: number; address: string } | undefined;
  isLive(id: number): boolean;
  onChange(listener: () => void): () => void;
}

/** A call waits so long for an owner of its object: longer than a lease. */
const waitMs = 15_000;
const againMs = 100;

/** Calls objects on this node, or passes the calls on to the nodes that have them. */
export class OwnedObjects implements ObjectGate {
  readonly #here: ObjectGate;
  readonly #owners: Owners;
  readonly #parts: NodeParts;
  /** By lease. */
  readonly #nodes = new Map<number, NodeObjects>();

  constructor(here: ObjectGate, owners: Owners, parts: NodeParts) {
    this.#here = here;
    this.#owners = owners;
    this.#parts = parts;
    owners.onChange(() => {
      for (const [id, node] of this.#nodes)
        if (!owners.isLive(id)) {
          this.#nodes.delete(id);
          node.end();
        }
    });
  }

  /** Whether objects of a namespace run on this node now. */
  owns(namespace: string): boolean {
    return this.#owners.owns(namespace);
  }

  /** Resolves when the changes that a calling node has are in effect here, such as a new database; with false if that takes too long. */
  async takesOver({ seq }: FromNode): Promise<boolean> {
    return seq === undefined || this.#parts.reaches(seq);
  }

  /**
   * Does work on a namespace of this node. Any fault of work whose namespace is given to another node meanwhile counts as a
   * result of that: the files and the processes of its objects are taken away.
   */
  async here<Result>(namespace: string, work: () => Promise<Result>): Promise<Result> {
    if (!this.owns(namespace)) throw overloadedCells();
    try {
      return await work();
    } catch (error) {
      throw isForCallers(error) || this.owns(namespace) ? error : connectionLost();
    }
  }

  async fetch(call: ObjectCall, exchange: Parameters<ObjectGate["fetch"]>[1]): Promise<void> {
    const { request, response } = exchange;
    await this.at(
      namespaceOf(call),
      async (node) => (node ?? this.#here).fetch(call, exchange),
      () => !hasBody(request) && !response.headersSent && !response.destroyed,
    );
  }

  async upgrade(call: ObjectCall, exchange: Parameters<ObjectGate["upgrade"]>[1]): Promise<void> {
    await this.at(
      namespaceOf(call),
      async (node) => (node ?? this.#here).upgrade(call, exchange),
      () => false,
    );
  }

  async route(call: ObjectCall, slot: number | undefined, method: string): Promise<ObjectRoute> {
    return this.at(namespaceOf(call), async (node) => (node ?? this.#here).route(call, slot, method));
  }

  async grant(call: ObjectCall, slot: number | undefined): Promise<ObjectGrant | undefined> {
    return this.#owners.owns(namespaceOf(call)) ? this.#here.grant(call, slot) : undefined;
  }

  async hooks(call: ObjectCall): Promise<RunHooks> {
    return this.#here.hooks(call);
  }

  /**
   * Does work at the owner of a namespace: undefined is this node. The work is repeated if the owner refused it without doing
   * anything, because the namespace is no longer there, and if the owner cannot be reached.
   */
  async at<Result>(
    namespace: string,
    work: (node: NodeObjects | undefined) => Promise<Result>,
    mayRepeat: () => boolean = () => true,
  ): Promise<Result> {
    const endMs = performance.now() + waitMs;
    for (;;) {
      const node = await this.#nodeOf(namespace, endMs);
      try {
        if (node === undefined) return await this.here(namespace, async () => work(node));
        return await work(node);
      } catch (error) {
        const isRefused = error instanceof ObjectRefusal && error.message === overloadedCells().message;
        const isUnread = error instanceof NodeAbsent || (isRefused && mayRepeat());
        const isHere = node === undefined && this.owns(namespace);
        if (isHere || !isUnread) throw error;
        if (performance.now() > endMs) throw overloadedCells();
        await new Promise((resolve) => setTimeout(resolve, againMs));
      }
    }
  }

  async #nodeOf(namespace: string, endMs: number): Promise<NodeObjects | undefined> {
    for (;;) {
      if (this.#owners.owns(namespace)) return undefined;
      const owner = this.#owners.addressOf(namespace);
      if (owner !== undefined) return this.#nodeAt(owner);
      const leftMs = endMs - performance.now();
      if (leftMs <= 0) throw overloadedCells();
      await this.#changed(leftMs);
    }
  }

  #nodeAt({ id, address }: { id: number; address: string }): NodeObjects {
    let node = this.#nodes.get(id);
    if (node === undefined) this.#nodes.set(id, (node = new NodeObjects(this.#parts, address)));
    return node;
  }

  async #changed(ms: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        end();
        resolve();
      };
      const timer = setTimeout(done, ms);
      const end = this.#owners.onChange(done);
    });
  }
}

const namespaceOf = ({ binding }: ObjectCall): string => binding.namespace_id ?? "";

const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
