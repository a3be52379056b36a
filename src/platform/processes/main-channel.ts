import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "pino";
import type { ChangeFeed } from "../storage/changes/change-feed.ts";
import type { ChangeListeners } from "../storage/changes/listeners.ts";
import { endsWithin } from "../util/ends-within.ts";
import { unawaited } from "../util/uncaught.ts";
import { machineMs } from "./machine-clock.ts";
import type { ProcessNotes } from "./notes.ts";
import {
  connectTo,
  Conversation,
  isAbsent,
  silenceMsMax,
  type EdgeMetrics,
  type FromEdge,
  type FromMain,
} from "./protocol.ts";

const againMs = 100;
/** How long a request waits for word from main. */
const askMsMax = 10_000;

/**
 * An edge process's line to main. It hears of each change before the API answers. Its data in memory may be used
 * only while its last word from main is younger than two seconds: main waits so long for an answer.
 */
export class MainChannel implements ChangeFeed {
  readonly #path: string;
  readonly #id: number;
  readonly #logger: Logger;
  #listeners: ChangeListeners | undefined;
  #notes: ProcessNotes | undefined;
  #conversation: Conversation<FromMain, FromEdge> | undefined;
  /** Messages are handled one after another. */
  #turn: Promise<void> = Promise.resolve();
  readonly #joined = Promise.withResolvers<void>();
  #hasJoined = false;
  readonly #loaded = Promise.withResolvers<void>();
  readonly #serving = Promise.withResolvers<void>();
  /** Whether it has ever served. */
  #hasServed = false;
  /** Whether main counts on its answers, in the current conversation. */
  #isServing = false;
  #isStopped = false;
  /** When main sent the last message whose predecessors are all in effect here. */
  #wordMs = -Infinity;
  #mainLagSeconds = 0;
  /** The next word from main, while requests wait for it. */
  #nextWord: PromiseWithResolvers<void> | undefined;
  /** The address of main's name server, once this process has joined. */
  dnsAddress = "";
  /** Set by the owner of the metrics. */
  metrics: () => Promise<EdgeMetrics> = async () => [];

  constructor(path: string, id: number, logger: Logger) {
    this.#path = path;
    this.#id = id;
    this.#logger = logger;
  }

  /** Takes notes of main, and sends those of this process. */
  carry(notes: ProcessNotes): void {
    this.#notes = notes;
    notes.line = {
      send: async (note) => this.#conversation?.send({ say: "note", ...note }),
      waitingBytes: () => this.#conversation?.unreadBytes ?? 0,
    };
  }

  /** Resolves when main tells this process of changes. They wait until `caughtUp` is called. */
  async join(): Promise<void> {
    unawaited(this.#stayConnected());
    await this.#joined.promise;
  }

  /** Sets the listeners, which will hear of the changes. */
  tell(listeners: ChangeListeners): void {
    this.#listeners = listeners;
  }

  /** Call it when all data is loaded. Resolves when all changes that came meanwhile are in effect. */
  async caughtUp(): Promise<void> {
    this.#loaded.resolve();
    await this.#serving.promise;
  }

  /** Whether everything that main has been told to have done is in effect here. */
  get isCurrent(): boolean {
    return machineMs() - this.#wordMs < silenceMsMax;
  }

  /** Asks main, and resolves with whether word came. */
  async becomesCurrent(): Promise<boolean> {
    const endMs = performance.now() + askMsMax;
    while (!this.isCurrent) {
      const leftMs = endMs - performance.now();
      if (leftMs <= 0) return false;
      await endsWithin(leftMs, this.#asked());
    }
    return true;
  }

  /** All requests that wait have asked once: main may have just come back from a stall. */
  async #asked(): Promise<void> {
    if (this.#nextWord === undefined) {
      this.#nextWord = Promise.withResolvers();
      this.#conversation?.send({ say: "ask" });
    }
    await this.#nextWord.promise;
  }

  get lagSeconds(): number {
    return Math.max(this.#mainLagSeconds, (machineMs() - this.#wordMs) / 1000 - silenceMsMax / 1000);
  }

  stop(): void {
    this.#isStopped = true;
    this.#conversation?.end();
  }

  async #stayConnected(): Promise<void> {
    while (!this.#isStopped) {
      const triedMs = machineMs();
      try {
        const socket = await connectTo(this.#path);
        await new Promise<void>((resolve) => {
          const conversation = new Conversation<FromMain, FromEdge>(socket, (message) =>
            this.#hear(message, conversation),
          );
          conversation.onEnd(resolve);
          this.#conversation = conversation;
          conversation.send({ say: "hello", id: this.#id, hasServed: this.#hasServed });
        });
        this.#conversation = undefined;
        this.#isServing = false;
      } catch (error) {
        // Without a main process, nothing changes.
        if (this.#hasServed && isAbsent(error)) this.#word(triedMs);
      }
      await delay(againMs);
    }
  }

  #hear(message: FromMain, conversation: Conversation<FromMain, FromEdge>): void {
    const take = async (): Promise<void> => {
      if (this.#conversation !== conversation) return;
      try {
        await this.#handle(message);
      } catch (error) {
        // It joins again, and reads everything again.
        this.#logger.error({ err: error }, "a change could not be read; everything is read again");
        conversation.end();
        return;
      }
      // Before `serve`, main would not wait for an answer to the next change.
      if (this.#isServing) this.#word(message.at);
      if (message.do !== "metrics") conversation.send({ say: "done", n: message.n });
      if (message.do === "join") conversation.send({ say: "ready" });
    };
    if (message.do === "metrics") unawaited(this.#tellMetrics(message.n, conversation));
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
        // Between two conversations, changes are missed: also while the data were loaded.
        if (isAgain) await this.#listeners!.reload();
        return;
      }
      case "serve":
        this.#isServing = true;
        this.#hasServed = true;
        this.#serving.resolve();
        return;
      case "change":
        return this.#listeners!.notify(message.changes);
      case "reload":
        return this.#listeners!.reload();
      case "note":
        return this.#notes?.take(message);
      case "beat":
        this.#mainLagSeconds = message.lagSeconds;
        return;
      case "metrics":
    }
  }

  #word(sentMs: number): void {
    this.#wordMs = Math.max(this.#wordMs, sentMs);
    this.#nextWord?.resolve();
    this.#nextWord = undefined;
  }

  async #tellMetrics(n: number, conversation: Conversation<FromMain, FromEdge>): Promise<void> {
    const metrics = await this.metrics().catch((error: unknown) => {
      this.#logger.error({ err: error }, "the metrics of this process could not be read");
      return [];
    });
    conversation.send({ say: "done", n, metrics });
  }
}
