import { rmSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { listenAt } from "../listen/listen.ts";
import type { Change } from "../storage/storage.ts";
import { unawaited } from "../util/uncaught.ts";
import { machineMs } from "./machine-clock.ts";
import { MessageBus } from "./message-bus.ts";
import {
  beatMs,
  messageLine,
  MessageConnection,
  silenceMsMax,
  type EdgeMetrics,
  type FromEdge,
  type FromMain,
  type BusMessage,
} from "./protocol.ts";

type Command = FromMain extends infer M ? (M extends FromMain ? Omit<M, "n" | "at"> : never) : never;

interface Pending {
  do: Command["do"];
  sentMs: number;
  /** Whether a change, or another promise of main, waits for the answer. */
  isAwaited: boolean;
  resolve: (answer: { metrics?: EdgeMetrics } | undefined) => void;
}

let lastNumber = 0;

/** A numbered command. It is encoded once for all edge processes that get it with the same `at`, which most do. */
class NumberedCommand {
  readonly n = ++lastNumber;
  readonly sentMs = machineMs();
  readonly #command: Command;
  #at: number | undefined;
  #line = "";

  constructor(command: Command) {
    this.#command = command;
  }

  get do(): Command["do"] {
    return this.#command.do;
  }

  line(at: number): string {
    if (at !== this.#at) {
      this.#line = messageLine({ ...this.#command, n: this.n, at });
      this.#at = at;
    }
    return this.#line;
  }
}

/** An edge process, as main sees it. */
class Member {
  readonly connection: MessageConnection<FromEdge, FromMain>;
  readonly pending = new Map<number, Pending>();
  id = 0;
  hasServed = false;
  /** Whether it has loaded its data. */
  isReady = false;
  /** Whether main waits for its answers. */
  isServing = false;
  beatAtMs = -Infinity;
  /** From when on its answers are overdue after two seconds. */
  patientMs = -Infinity;

  constructor(socket: Socket, onMessage: (message: FromEdge) => void) {
    this.connection = new MessageConnection(socket, onMessage);
  }

  /** Resolves with the answer, or with undefined when the process has left. */
  request(command: NumberedCommand): Promise<{ metrics?: EdgeMetrics } | undefined> {
    const { n, sentMs } = command;
    const at = this.#trustedMs(sentMs);
    return new Promise((resolve) => {
      this.pending.set(n, { do: command.do, sentMs, isAwaited: this.isServing, resolve });
      this.connection.sendLine(command.line(at));
    });
  }

  /** It has the changes up to this time, or main waits for it. While an order has no answer and is not awaited: too old to serve. */
  #trustedMs(nowMs: number): number {
    const oldest = this.oldest;
    if (oldest === undefined) return nowMs;
    return oldest.isAwaited ? oldest.sentMs : oldest.sentMs - silenceMsMax;
  }

  /** The first order without an answer, other than those that may take long. */
  get oldest(): Pending | undefined {
    for (const each of this.pending.values()) if (each.do !== "reload" && each.do !== "metrics") return each;
    return undefined;
  }

  /** The time of the order to read everything again; undefined without one. */
  get reloadsSinceMs(): number | undefined {
    for (const each of this.pending.values()) if (each.do === "reload") return each.sentMs;
    return undefined;
  }

  /** The time since the oldest answer is due. */
  overdueMs(): number {
    const { oldest } = this;
    return oldest === undefined ? 0 : machineMs() - Math.max(oldest.sentMs, this.patientMs);
  }

  /** Nothing waits for its answers any more, so it serves nothing until it has carried out all orders. */
  setAside(): void {
    this.isServing = false;
    for (const each of this.pending.values()) {
      each.isAwaited = false;
      each.resolve(undefined);
    }
  }

  /** The same, without waiting for the answer. A process that does not answer counts as stalled nevertheless. */
  send(command: Command): void {
    unawaited(this.request(new NumberedCommand(command)));
  }

  gone(): void {
    for (const { resolve } of this.pending.values()) resolve(undefined);
    this.pending.clear();
  }
}

export interface FleetOptions {
  /** The path of the Unix socket for edge processes. */
  path: string;
  /** Edge processes that serve already and will join again. */
  serving: number;
  /** How long an edge process may take to read everything again. */
  reloadMsMax: number;
  lagSeconds: () => number;
  /** The address of the name server. */
  dnsAddress: () => string;
  /** Called with the id of an edge process that does not answer, after it was removed from the fleet. */
  onStalled: (id: number) => void;
  bus?: MessageBus;
}

/** The edge processes of this main process. */
export class Fleet {
  readonly #options: FleetOptions;
  readonly #members = new Set<Member>();
  /** Edge processes that connected before `listen`. */
  readonly #early = new Set<Member>();
  readonly #server: Server;
  readonly #bus: MessageBus;
  #opened: Promise<void> | undefined;
  #openedMs = 0;
  #settled: Promise<void> | undefined;
  #rejoined: (() => void) | undefined;
  #left: number;
  #joining: (() => void)[] = [];
  #timer: NodeJS.Timeout | undefined;
  #lastTickMs = 0;

  constructor(options: FleetOptions) {
    this.#options = options;
    this.#left = options.serving;
    this.#server = createServer((socket) => this.#accept(socket));
    this.#bus = options.bus ?? new MessageBus();
    this.#bus.link = {
      send: async (message) => this.#all({ do: "note", ...message }),
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

  /** Lets edge processes join. */
  async listen(): Promise<void> {
    await (this.#opened ??= this.#open());
    // Edge processes of an earlier main process may use the data of that time until they receive a message from this one.
    const rejoined = new Promise<void>((resolve) => (this.#rejoined = resolve));
    this.#settled = this.#left === 0 ? Promise.resolve() : Promise.race([rejoined, this.#silence()]);
    this.#lastTickMs = performance.now();
    this.#timer = setInterval(() => this.#tick(), beatMs / 2).unref();
    for (const member of this.#early) this.#welcome(member);
    this.#early.clear();
  }

  async #open(): Promise<void> {
    rmSync(this.#options.path, { force: true });
    await listenAt(this.#server, { path: this.#options.path });
    this.#openedMs = performance.now();
  }

  /** Resolves two seconds after the socket was opened. No message from an earlier main process is valid any more. */
  async #silence(): Promise<void> {
    const endMs = this.#openedMs + silenceMsMax;
    // A timer may fire early, by the duration of the turn of the event loop in which it was set.
    while (performance.now() < endMs) await delay(Math.ceil(endMs - performance.now()));
  }

  /** Resolves when the changes are in effect in every edge process that serves. */
  async broadcast(changes: readonly Change[]): Promise<void> {
    await this.#all({ do: "change", changes });
  }

  /**
   * The same for everything: changes of other nodes may have been missed. Edge processes serve what they have until then,
   * as one process does, and changes of this node do not wait longer than usual.
   */
  async reload(): Promise<void> {
    await Promise.race([this.#all({ do: "reload" }), delay(silenceMsMax, undefined, { ref: false })]);
  }

  /** The metrics of each edge process that answers within two seconds. */
  async metrics(): Promise<EdgeMetrics[]> {
    const asked = [...this.#members].map(async (member) =>
      Promise.race([
        member.request(new NumberedCommand({ do: "metrics" })),
        delay(silenceMsMax, undefined, { ref: false }),
      ]),
    );
    return (await Promise.all(asked)).flatMap((answer) =>
      answer?.metrics === undefined ? [] : [answer.metrics],
    );
  }

  close(): void {
    clearInterval(this.#timer);
    this.#server.close();
    for (const { connection } of [...this.#members, ...this.#early]) connection.end();
  }

  async #all(command: Command): Promise<void> {
    await (this.#settled ?? this.#forgotten());
    const numbered = new NumberedCommand(command);
    const awaited: Promise<unknown>[] = [];
    for (const member of this.#members) {
      const done = member.request(numbered);
      // A process that is still loading serves no requests. It applies the order before it serves.
      if (member.isServing) awaited.push(done);
    }
    await Promise.all(awaited);
  }

  /**
   * Before `listen`: resolves when edge processes of an earlier main process no longer trust their data.
   * Without a socket they assume that nothing changes; once the socket has been open for two seconds without
   * a message, they ask before they serve. The API may listen earlier than that, and must not acknowledge a
   * change that they lack.
   */
  async #forgotten(): Promise<void> {
    if (this.#left <= 0) return;
    await (this.#opened ??= this.#open());
    await this.#silence();
  }

  #accept(socket: Socket): void {
    const member = new Member(socket, (message) => this.#receive(message, member));
    member.connection.onEnd(() => {
      this.#members.delete(member);
      this.#early.delete(member);
      member.gone();
    });
  }

  #receive(message: FromEdge, member: Member): void {
    switch (message.say) {
      case "hello":
        member.id = message.id;
        member.hasServed = message.hasServed;
        if (this.#settled === undefined) this.#early.add(member);
        else this.#welcome(member);
        return;
      case "ready":
        member.isReady = true;
        member.isServing = true;
        member.patientMs = machineMs();
        member.send({ do: "serve" });
        if (member.hasServed) this.#left -= 1;
        if (this.#left <= 0) this.#rejoined?.();
        for (const resolve of this.#joining.splice(0)) resolve();
        return;
      case "ask":
        this.#beat(member);
        return;
      case "note":
        unawaited(this.#deliver({ topic: message.topic, value: message.value }, member));
        return;
      case "done":
        this.#done(message, member);
    }
  }

  #done(message: FromEdge & { say: "done" }, member: Member): void {
    const pending = member.pending.get(message.n);
    member.pending.delete(message.n);
    pending?.resolve(message);
    if (pending?.do !== "reload" || !this.#members.has(member)) return;
    member.patientMs = machineMs();
    member.isServing ||= member.isReady;
  }

  #welcome(member: Member): void {
    this.#members.add(member);
    member.send({ do: "join", dns: this.#options.dnsAddress() });
    for (const message of this.#bus.messagesForJoiners()) member.send({ do: "note", ...message });
  }

  async #deliver(message: BusMessage, from: Member): Promise<void> {
    await this.#bus.deliver(message, () => {
      for (const member of this.#members) if (member !== from) member.send({ do: "note", ...message });
    });
  }

  #beat(member: Member): void {
    member.beatAtMs = performance.now();
    member.send({ do: "beat", lagSeconds: this.#options.lagSeconds() });
  }

  #tick(): void {
    const nowMs = performance.now();
    // This process itself was stalled, so answers may be waiting to be read.
    const wasAway = nowMs - this.#lastTickMs > silenceMsMax / 2;
    this.#lastTickMs = nowMs;
    for (const member of this.#members) {
      if (!wasAway) this.#watch(member);
      if (this.#members.has(member) && nowMs - member.beatAtMs >= beatMs) this.#beat(member);
    }
  }

  /** One that reads everything again may be slow, and serves nothing while a change waits behind that. */
  #watch(member: Member): void {
    const { reloadsSinceMs } = member;
    const isTooLong =
      reloadsSinceMs !== undefined && machineMs() - reloadsSinceMs > this.#options.reloadMsMax;
    const isOverdue = member.isServing && member.overdueMs() > silenceMsMax;
    if (isTooLong || (isOverdue && reloadsSinceMs === undefined)) this.#takeOut(member);
    else if (isOverdue) member.setAside();
  }

  #takeOut(member: Member): void {
    this.#members.delete(member);
    member.connection.end();
    member.gone();
    this.#options.onStalled(member.id);
  }
}
