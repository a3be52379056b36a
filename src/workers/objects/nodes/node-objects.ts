import type { Duplex } from "node:stream";
import type { Socket } from "node:net";
import type { ProcessCalls } from "../../../platform/process-calls/calls.ts";
import { FailedCall } from "../../../platform/process-calls/call-messages.ts";
import { unawaited } from "../../../platform/util/uncaught.ts";
import { ObjectRefusal } from "../../../sandbox/errors.ts";
import type { DoorsElsewhere, NodeDoors } from "../../../sandbox/gateway/doors.ts";
import { objectFault } from "../../../sandbox/objects/faults.ts";
import { CellFault } from "../../../sandbox/errors.ts";
import { doorHost } from "../../../sandbox/process/object-config.ts";
import type { ObjectRoute } from "../../../sandbox/protocol.ts";
import { understood } from "../../call-failures.ts";
import { noObjects, type ObjectCall, type ObjectGate } from "../../runtime/object-gate.ts";
import { names, type CallsOut, type FromNode } from "./passed-calls.ts";

const lost = (): ObjectRefusal => objectFault(new CellFault("ended", false));

/** The objects of another node, until its lease ends. */
export class NodeObjects implements ObjectGate, NodeDoors {
  readonly #calls: ProcessCalls;
  readonly #out: CallsOut;
  readonly #doors: DoorsElsewhere;
  readonly #address: string;
  readonly #ended = new AbortController();
  readonly #seq: () => number | undefined;

  constructor({ calls, out, doors, seq }: NodeParts, address: string) {
    this.#calls = calls;
    this.#out = out;
    this.#doors = doors;
    this.#seq = seq;
    this.#address = address;
  }

  /** The lease of the node has ended: what it answers from now on counts no more. */
  end(): void {
    this.#ended.abort(lost());
  }

  async fetch(call: ObjectCall, exchange: Parameters<ObjectGate["fetch"]>[1]): Promise<void> {
    await this.#within(
      this.#calls.forward(names.fetch, this.#told(call), exchange, this.#address, this.#ended.signal),
    );
  }

  async upgrade(call: ObjectCall, exchange: Parameters<ObjectGate["upgrade"]>[1]): Promise<void> {
    await this.#within(
      this.#calls.upgrade(names.fetch, this.#told(call), exchange, this.#address, this.#ended.signal),
    );
  }

  async route(call: ObjectCall, _slot: number | undefined, method: string): Promise<ObjectRoute> {
    const route = await this.ask<ObjectRoute>(names.route, { call: this.#told(call), method });
    if ("event" in route) throw new Error("Expected an object in a cell of another node");
    return { slot: this.#doors.open(this, route.slot, route.token), token: route.token };
  }

  /** Only a cell that has the object makes calls without asking. */
  async grant(): Promise<undefined> {
    return undefined;
  }

  async hooks(call: ObjectCall): ReturnType<ObjectGate["hooks"]> {
    return noObjects.hooks(call);
  }

  join(slot: number, from: Duplex, head: Buffer): void {
    const way = { headers: [], socket: from as Socket, head };
    const joined = this.#calls.join(
      names.door,
      { host: doorHost(slot) },
      way,
      this.#address,
      this.#ended.signal,
    );
    unawaited(joined.catch(() => from.destroy())); // the caller gets the fault of its call
  }

  async faultOf(token: string): Promise<ObjectRefusal | undefined> {
    if (this.#ended.signal.aborted) return lost();
    const asked = this.ask<{ message: string; flags: ObjectRefusal["flags"] } | null>(names.fault, { token });
    const fault = await asked.catch(() => lost());
    return fault === null ? undefined : new ObjectRefusal(fault.message, ...fault.flags);
  }

  /** Has the other node answer a request. Rejects as it does. */
  async forward(name: string, details: object, exchange: Parameters<ObjectGate["fetch"]>[1]): Promise<void> {
    const told = this.#withSeq(details);
    await this.#within(this.#calls.forward(name, told, exchange, this.#address, this.#ended.signal));
  }

  /** Asks the other node for JSON. Rejects as it does. */
  async ask<Answer>(name: string, details: object): Promise<Answer> {
    const told = this.#withSeq(details);
    return this.#within(this.#calls.ask<Answer>(name, told, this.#address, this.#ended.signal));
  }

  #told(call: ObjectCall): unknown {
    return this.#withSeq(this.#out.told(call));
  }

  /** The other node first takes over the changes that this node has. */
  #withSeq(details: object): object {
    return { ...details, seq: this.#seq() } satisfies FromNode;
  }

  /** Rejects with NodeAbsent while nothing was sent. Later errors of the connection are those of an object whose process has ended. */
  async #within<Result>(work: Promise<Result>): Promise<Result> {
    try {
      return await understood(work);
    } catch (error) {
      if (error instanceof ObjectRefusal || !isOfConnection(error)) throw error;
      throw lost();
    }
  }
}

/** The ways to other nodes. `seq`: the last change that is in effect here. */
export interface NodeParts {
  calls: ProcessCalls;
  out: CallsOut;
  doors: DoorsElsewhere;
  seq: () => number | undefined;
  /** Resolves when a change is in effect here, or after some time. */
  reaches: (seq: number) => Promise<void>;
}

const isOfConnection = (error: unknown): boolean =>
  error instanceof Error && !(error instanceof FailedCall) && error.constructor === Error;
