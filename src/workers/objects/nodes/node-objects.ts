import type { Duplex } from "node:stream";
import type { Socket } from "node:net";
import type { ProcessCalls } from "../../../platform/process-calls/calls.ts";
import { FailedCall } from "../../../platform/process-calls/call-messages.ts";
import { unawaited } from "../../../platform/util/uncaught.ts";
import { ObjectRefusal } from "../../../sandbox/errors.ts";
import type { RemoteTunnels, NodeTunnels } from "../../../sandbox/gateway/rpc-tunnels.ts";
import { connectionLost } from "../../../sandbox/objects/faults.ts";
import { rpcHost } from "../../../sandbox/process/object-config.ts";
import type { ObjectRoute } from "../../../sandbox/protocol.ts";
import { understood } from "../../call-failures.ts";
import { noObjects, type ObjectCall, type ObjectGate } from "../../runtime/object-gate.ts";
import { Presence } from "./presence.ts";
import { callNames, type OutgoingCalls, type FromNode } from "./passed-calls.ts";

/** The objects of another node, until its lease ends. */
export class NodeObjects implements ObjectGate, NodeTunnels {
  readonly #calls: ProcessCalls;
  readonly #out: OutgoingCalls;
  readonly #tunnels: RemoteTunnels;
  readonly #address: string;
  #connection = new AbortController();
  #isEnded = false;
  readonly #presence: Presence;
  readonly #seq: () => number | undefined;

  constructor({ calls, out, tunnels, seq, silentMs }: NodeParts, address: string) {
    this.#calls = calls;
    this.#out = out;
    this.#tunnels = tunnels;
    this.#seq = seq;
    this.#address = address;
    const ask = async (): Promise<unknown> =>
      calls.ask(callNames.presence, {}, address, this.#connection.signal);
    this.#presence = new Presence(ask, silentMs, () => this.#disconnect());
  }

  /** The lease of the node has ended: what it answers from now on counts no more. */
  end(): void {
    this.#isEnded = true;
    this.#disconnect();
  }

  /** Ends the calls in progress. */
  #disconnect(): void {
    const before = this.#connection;
    if (!this.#isEnded) this.#connection = new AbortController();
    before.abort(connectionLost());
  }

  get #signal(): AbortSignal {
    return this.#connection.signal;
  }

  async fetch(call: ObjectCall, exchange: Parameters<ObjectGate["fetch"]>[1]): Promise<void> {
    await this.#within(
      this.#calls.forward(callNames.fetch, this.#serialize(call), exchange, this.#address, this.#signal),
    );
  }

  async upgrade(call: ObjectCall, exchange: Parameters<ObjectGate["upgrade"]>[1]): Promise<void> {
    await this.#within(
      this.#calls.upgrade(callNames.fetch, this.#serialize(call), exchange, this.#address, this.#signal),
    );
  }

  async route(call: ObjectCall, _slot: number | undefined, method: string): Promise<ObjectRoute> {
    const route = await this.ask<ObjectRoute>(callNames.route, { call: this.#serialize(call), method });
    if ("event" in route) throw new Error("Expected an object in a cell of another node");
    return {
      slot: this.#tunnels.open(this, route.slot, { token: route.token, accountId: call.caller.accountId }),
      token: route.token,
    };
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
      callNames.tunnel,
      { host: rpcHost(slot) },
      way,
      this.#address,
      this.#signal,
    );
    unawaited(this.#presence.during(joined).catch(() => from.destroy())); // the caller gets the fault of its call
  }

  async faultOf(token: string): Promise<ObjectRefusal | undefined> {
    if (this.#isEnded) return connectionLost();
    const asked = this.ask<{ message: string; flags: ObjectRefusal["flags"] } | null>(callNames.fault, {
      token,
    });
    const fault = await asked.catch(() => connectionLost());
    return fault === null ? undefined : new ObjectRefusal(fault.message, ...fault.flags);
  }

  /** Has the other node answer a request. Rejects as it does. */
  async forward(name: string, details: object, exchange: Parameters<ObjectGate["fetch"]>[1]): Promise<void> {
    const message = this.#withSeq(details);
    await this.#within(this.#calls.forward(name, message, exchange, this.#address, this.#signal));
  }

  /** Asks the other node for JSON. Rejects as it does. */
  async ask<Answer>(name: string, details: object): Promise<Answer> {
    const message = this.#withSeq(details);
    return this.#within(this.#calls.ask<Answer>(name, message, this.#address, this.#signal));
  }

  #serialize(call: ObjectCall): unknown {
    return this.#withSeq(this.#out.serialize(call));
  }

  /** The other node first takes over the changes that this node has. */
  #withSeq(details: object): object {
    return { ...details, seq: this.#seq() } satisfies FromNode;
  }

  /** Rejects with NodeAbsent while nothing was sent. Later errors of the connection are those of an object whose process has ended. */
  async #within<Result>(work: Promise<Result>): Promise<Result> {
    try {
      return await understood(this.#presence.during(work));
    } catch (error) {
      if (error instanceof ObjectRefusal || !isOfConnection(error)) throw error;
      throw connectionLost();
    }
  }
}

/** The ways to other nodes. `seq`: the last change that is in effect here. */
export interface NodeParts {
  calls: ProcessCalls;
  out: OutgoingCalls;
  tunnels: RemoteTunnels;
  seq: () => number | undefined;
  /** Calls of a node that answers nothing for this time end. */
  silentMs: number;
  /** Resolves with true when a change is in effect here, or with false after some time. */
  reaches: (seq: number) => Promise<boolean>;
}

const isOfConnection = (error: unknown): boolean =>
  error instanceof Error && !(error instanceof FailedCall) && error.constructor === Error;
