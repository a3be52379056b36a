import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "pino";
import type { ChangeFeed } from "../storage/changes/change-feed.ts";
import type { ChangeListeners } from "../storage/changes/listeners.ts";
import { endsWithin } from "../util/ends-within.ts";
import { unawaited } from "../util/uncaught.ts";
import { machineMs } from "./machine-clock.ts";
import type { MessageBus } from "./message-bus.ts";
import {
  connectTo,
  MessageConnection,
  isAbsent,
  silenceMsMax,
  type EdgeMetrics,
  type FromEdge,
  type FromMain,
} from "./protocol.ts";

const againMs = 100;
/** How long a request waits for a message from the main process. */
const askMsMax = 10_000;

/**
 * An edge process's connection to the main process ("main"), which reports each change before the API
 * answers. The data in memory may be used only until two seconds after main's last message: main waits that
 * long for an answer before it acknowledges a change without this process.
 */
export class MainChannel implements ChangeFeed {
  readonly #path: string;
  readonly #id: number;
  readonly #logger: Logger;
  #listeners: ChangeListeners | undefined;
  #bus: MessageBus | undefined;
  #connection: MessageConnection<FromMain, FromEdge> | undefined;
  /** Messages are handled one after another. */
  #turn: Promise<void> = Promise.resolve();
  readonly #joined = Promise.withResolvers<void>();
  #hasJoined = false;
  readonly #loaded = Promise.withResolvers<void>();
  readonly #serving = Promise.withResolvers<void>();
  /** Whether this process has ever served visitors. */
  #hasServed = false;
  /** Whether main waits for this process's answers, over the current connection. */
  #isServing = false;
  #isStopped = false;
  /** The latest `at` of main's messages: changes up to it are in effect here, or main waits for this process. */
  #contactMs = -Infinity;
  /** Since when everything is read again. */
  #reloadsSinceMs: number | undefined;
  #mainLagSeconds = 0;
  /** Resolves at the next message from main, while requests wait for it. */
  #nextContact: PromiseWithResolvers<void> | undefined;
  /** The address of main's name server, once this process has joined. */
  dnsAddress = "";
  /** Set by the owner of the metrics. */
  metrics: () => Promise<EdgeMetrics> = async () => [];

  constructor(path: string, id: number, logger: Logger) {
    this.#path = path;
    this.#id = id;
    this.#logger = logger;
  }

  /** Connects the bus of this process with that of main. */
  connect(bus: MessageBus): void {
    this.#bus = bus;
    bus.link = {
      send: async (message) => this.#connection?.send({ say: "note", ...message }),
      waitingBytes: () => this.#connection?.unreadBytes ?? 0,
    };
  }

  /** Resolves when main has begun to send changes. They wait until `caughtUp` is called. */
  async join(): Promise<void> {
    unawaited(this.#stayConnected());
    await this.#joined.promise;
  }

  subscribe(listeners: ChangeListeners): void {
    this.#listeners = listeners;
  }

  /** Call this when all data is loaded. Resolves when all changes since `join` are in effect. */
  async caughtUp(): Promise<void> {
    this.#loaded.resolve();
    await this.#serving.promise;
  }

  /** Whether every change that main has acknowledged is in effect here. */
  get isCurrent(): boolean {
    return machineMs() - this.#contactMs < silenceMsMax;
  }

  /** Asks main. Resolves with true once this process is current, or with false after ten seconds. */
  async becomesCurrent(): Promise<boolean> {
    const endMs = performance.now() + askMsMax;
    while (!this.isCurrent) {
      const leftMs = endMs - performance.now();
      if (leftMs <= 0) return false;
      await endsWithin(leftMs, this.#ask());
    }
    return true;
  }

  /** Asks main once for all waiting requests, because many may wait after main has stalled. */
  async #ask(): Promise<void> {
    if (this.#nextContact === undefined) {
      this.#nextContact = Promise.withResolvers();
      this.#connection?.send({ say: "ask" });
    }
    await this.#nextContact.promise;
  }

  get lagSeconds(): number {
    const messageDueMs = this.#contactMs + silenceMsMax;
    return Math.max(
      this.#mainLagSeconds,
      (machineMs() - Math.min(messageDueMs, this.#reloadsSinceMs ?? messageDueMs)) / 1000,
    );
  }

  stop(): void {
    this.#isStopped = true;
    this.#connection?.end();
  }

  async #stayConnected(): Promise<void> {
    while (!this.#isStopped) {
      const triedMs = machineMs();
      try {
        const socket = await connectTo(this.#path);
        await new Promise<void>((resolve) => {
          const connection = new MessageConnection<FromMain, FromEdge>(socket, (message) =>
            this.#receive(message, connection),
          );
          connection.onEnd(resolve);
          this.#connection = connection;
          connection.send({ say: "hello", id: this.#id, hasServed: this.#hasServed });
        });
        this.#connection = undefined;
        this.#isServing = false;
      } catch (error) {
        // Without a main process, nothing can change.
        if (this.#hasServed && isAbsent(error)) this.#noteContact(triedMs);
      }
      await delay(againMs);
    }
  }

  #receive(message: FromMain, connection: MessageConnection<FromMain, FromEdge>): void {
    const take = async (): Promise<void> => {
      if (this.#connection !== connection) return;
      try {
        await this.#handle(message);
      } catch (error) {
        // This process then joins again and reads everything again.
        this.#logger.error(
          { err: error },
          "a change could not be applied; this process reads everything again",
        );
        connection.end();
        return;
      }
      connection.send({ say: "done", n: message.n });
      if (message.do === "join") connection.send({ say: "ready" });
    };
    // Before `serve`, main would not wait for an answer to the next change.
    if (this.#isServing && this.#connection === connection) this.#noteContact(message.at);
    if (message.do === "metrics") unawaited(this.#sendMetrics(message.n, connection));
    // Main knows what is done here, so this needs no turn.
    else if (message.do === "beat") unawaited(take());
    else this.#turn = this.#turn.then(take);
  }

  async #handle(message: FromMain): Promise<void> {
    switch (message.do) {
      case "join": {
        this.dnsAddress = message.dns;
        const isAgain = this.#hasJoined;
        this.#hasJoined = true;
        this.#joined.resolve();
        await this.#loaded.promise;
        // Changes between two connections were missed, also while the data was loaded.
        if (isAgain) await this.#listeners!.reload();
        return;
      }
      case "serve":
        this.#isServing = true;
        this.#hasServed = true;
        this.#noteContact(message.at);
        this.#serving.resolve();
        return;
      case "change":
        return this.#listeners!.notify(message.changes);
      case "reload":
        this.#reloadsSinceMs = machineMs();
        return this.#listeners!.reload().finally(() => (this.#reloadsSinceMs = undefined));
      case "note":
        return this.#bus?.deliver(message);
      case "beat":
        this.#mainLagSeconds = message.lagSeconds;
        return;
      case "metrics":
    }
  }

  #noteContact(sentMs: number): void {
    this.#contactMs = Math.max(this.#contactMs, sentMs);
    if (!this.isCurrent) return; // it still has something to do; main sends a message again
    this.#nextContact?.resolve();
    this.#nextContact = undefined;
  }

  async #sendMetrics(n: number, connection: MessageConnection<FromMain, FromEdge>): Promise<void> {
    const metrics = await this.metrics().catch((error: unknown) => {
      this.#logger.error({ err: error }, "the metrics of this process could not be read");
      return [];
    });
    connection.send({ say: "done", n, metrics });
  }
}
