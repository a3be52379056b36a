import { rmSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { listenAt } from "../listen/listen.ts";
import type { Change } from "../storage/storage.ts";
import { unawaited } from "../util/uncaught.ts";
import { FleetMember } from "./fleet-member.ts";
import { MessageBus } from "./message-bus.ts";
import {
  beatMs,
  channelPath,
  messageLine,
  protocolVersion,
  ringPath,
  silenceMsMax,
  type BusMessage,
  type EdgeMetrics,
  type FromEdge,
  type RingRecord,
} from "./protocol.ts";
import { lineBytesMax, RingWriter } from "./ring.ts";

/** Edge processes learn of new records after this time, if no request makes them look earlier. */
const noticeMs = 50;
/** To read so many rows takes an edge process so long that visitors would notice if they waited for it. */
const fewChanges = 50;
/** Changes of one record of a large transaction. */
const partChanges = 500;

export interface FleetOptions {
  /** The folder for the ring and the socket for edge processes. */
  folder: string;
  /** Edge processes that serve already. */
  serving: number;
  /** How long an edge process may take to read everything again. */
  reloadMsMax: number;
  lagSeconds: () => number;
  /** The address of the name server. */
  dnsAddress: () => string;
  /** Called with the id of an edge process that does not answer, after it was removed from the fleet. */
  onStalled: (id: number) => void;
  /** Asks an edge process for its metrics. */
  metricsOf?: (id: number) => Promise<EdgeMetrics>;
  bus?: MessageBus;
}

/**
 * The edge processes of this main process. Each change is in the ring before the API answers, and edge processes look
 * there before they answer a request, so main waits for none of them.
 */
export class Fleet {
  readonly #options: FleetOptions;
  readonly #ring: RingWriter;
  readonly #members = new Set<FleetMember>();
  readonly #server: Server;
  readonly #bus: MessageBus;
  #isListening = false;
  #joining: (() => void)[] = [];
  #timer: NodeJS.Timeout | undefined;
  #notice: NodeJS.Timeout | undefined;
  #lastTickMs = 0;

  constructor(options: FleetOptions) {
    this.#options = options;
    this.#ring = new RingWriter(ringPath(options.folder));
    if (!this.#ring.isOlder && options.serving > 0)
      throw new Error(
        "The edge processes are of a version that this one does not work with: restart the node",
      );
    this.#server = createServer((socket) => this.#accept(socket));
    this.#bus = options.bus ?? new MessageBus();
    this.#bus.link = {
      send: async (message) => {
        this.#append({ do: "note", ...message }, true);
      },
      waitingBytes: () => 0,
    };
  }

  /** Edge processes that serve visitors. */
  get serving(): number {
    return [...this.#members].filter(({ isServing }) => isServing).length;
  }

  /** Resolves once at least this many edge processes serve. */
  async serves(count: number): Promise<void> {
    while (this.serving < count) await new Promise<void>((resolve) => this.#joining.push(resolve));
  }

  /** Lets edge processes join. Call it when everything is loaded. */
  async listen(): Promise<void> {
    const path = channelPath(this.#options.folder);
    rmSync(path, { force: true });
    this.#isListening = true;
    // An earlier main may have made changes that it did not write, and other nodes may have made some meanwhile.
    if (this.#ring.isOlder) this.reload();
    await listenAt(this.#server, { path });
    this.#lastTickMs = performance.now();
    this.#timer = setInterval(() => this.#tick(), beatMs / 2).unref();
  }

  /** Resolves when no edge process answers a request any more without the changes. */
  async broadcast(changes: readonly Change[]): Promise<void> {
    // An earlier main may have made a change before these that it did not write.
    if (!this.#isListening) this.#append({ do: "reload" }, true);
    else if (changes.length <= fewChanges) this.#append({ do: "change", changes }, true);
    else await this.#broadcastMany(changes);
  }

  /** Lets edge processes carry out many changes before they are due, because visitors would wait for that. */
  async #broadcastMany(changes: readonly Change[]): Promise<void> {
    const late = delay(silenceMsMax, undefined, { ref: false });
    let end = 0;
    for (let at = 0; at < changes.length; at += partChanges) {
      end = this.#append({ do: "change", changes: changes.slice(at, at + partChanges) }, false);
      await Promise.race([Promise.all([...this.#members].map(async (each) => each.reaches(end))), late]);
    }
    this.#ring.makeDue(end);
  }

  /**
   * The same for everything: changes of other nodes may have been missed. Edge processes serve what they have until then,
   * as one process does.
   */
  reload(): void {
    const end = this.#append({ do: "reload" }, false);
    for (const member of this.#members) member.mayReadUntil(end);
  }

  /** The metrics of each edge process that answers within two seconds. */
  async metrics(): Promise<EdgeMetrics[]> {
    const asked = [...this.#members].map(async ({ id }) =>
      Promise.race([
        this.#options.metricsOf?.(id).catch(() => undefined),
        delay(silenceMsMax, undefined, { ref: false }),
      ]),
    );
    return (await Promise.all(asked)).filter((metrics) => metrics !== undefined);
  }

  /** Later changes are still written: edge processes serve without this process. */
  close(): void {
    clearInterval(this.#timer);
    clearTimeout(this.#notice);
    this.#server.close();
    for (const { connection } of this.#members) connection.end();
  }

  /** Returns the position behind the record. */
  #append(record: RingRecord, isDue: boolean): number {
    const line = messageLine(record);
    this.#notice ??= setTimeout(() => this.#noticeNow(), noticeMs).unref();
    if (Buffer.byteLength(line) <= lineBytesMax) return this.#ring.append(line, isDue);
    const substitute = { do: record.do === "note" ? "rejoin" : "reload" };
    return this.#ring.append(messageLine(substitute), isDue);
  }

  #noticeNow(): void {
    clearTimeout(this.#notice);
    this.#notice = undefined;
    for (const { connection } of this.#members) connection.send({ do: "look" });
  }

  #accept(socket: Socket): void {
    const member = new FleetMember(socket, this.#options.reloadMsMax, (message) =>
      this.#receive(message, member),
    );
    member.connection.onEnd(() => {
      this.#members.delete(member);
      member.leave();
    });
  }

  #receive(message: FromEdge, member: FleetMember): void {
    switch (message.say) {
      case "hello":
        member.id = message.id;
        if (message.version === protocolVersion) this.#members.add(member);
        // One of another version serves nothing after this answer. Its supervisor ends it if it is about to start.
        member.connection.send({
          do: "join",
          version: protocolVersion,
          dns: this.#options.dnsAddress(),
          position: this.#ring.end,
          notes: this.#bus.messagesForJoiners(),
        });
        return;
      case "ready":
        member.isServing = true;
        for (const resolve of this.#joining.splice(0)) resolve();
        return;
      case "note":
        unawaited(this.#deliver({ topic: message.topic, value: message.value }, member.id));
        return;
      case "at":
        member.isAt(message);
    }
  }

  /** Messages of edge processes are for all, and urgent: that a script has stalled a cell, for example. */
  async #deliver(message: BusMessage, from: number): Promise<void> {
    await this.#bus.deliver(message, () => {
      this.#append({ do: "note", ...message, except: from }, false);
      this.#noticeNow();
    });
  }

  #tick(): void {
    const nowMs = performance.now();
    // This process itself was stalled, so answers may be waiting to be read.
    const wasAway = nowMs - this.#lastTickMs > silenceMsMax / 2;
    this.#lastTickMs = nowMs;
    for (const member of this.#members) {
      if (!wasAway && member.isStalled) this.#takeOut(member);
      else member.beat(this.#ring.end, this.#options.lagSeconds());
    }
  }

  #takeOut(member: FleetMember): void {
    this.#members.delete(member);
    member.connection.end();
    member.leave();
    this.#options.onStalled(member.id);
  }
}
