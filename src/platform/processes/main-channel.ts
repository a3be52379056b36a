import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "pino";
import type { ChangeFeed } from "../storage/changes/change-feed.ts";
import type { ChangeListeners } from "../storage/changes/listeners.ts";
import { endsWithin } from "../util/ends-within.ts";
import { unawaited } from "../util/uncaught.ts";
import type { MessageBus } from "./message-bus.ts";
import {
  channelPath,
  connectTo,
  MessageConnection,
  isAbsent,
  protocolVersion,
  ringPath,
  silenceMsMax,
  type FromEdge,
  type FromMain,
  type RingRecord,
} from "./protocol.ts";
import { RingFollower } from "./ring-follower.ts";
import { RingReader } from "./ring.ts";

const againMs = 100;
/** How long a request waits until the changes before it are in effect. */
const waitMsMax = 10_000;

/** Whether the data of this process is that of main, see `MainChannel`. */
export type CurrentData = Pick<MainChannel, "isCurrent" | "becomesCurrent">;

/**
 * An edge process's view of the main process ("main"). Main writes each change into the ring before the API answers, and
 * this process looks there before it answers a request. So it serves nothing stale, even if a
 * message was lost or a process was stopped for long, and needs no main process to serve.
 */
export class MainChannel implements ChangeFeed {
  readonly #folder: string;
  readonly #id: number;
  readonly #logger: Logger;
  #follower: RingFollower | undefined;
  #listeners: ChangeListeners | undefined;
  #bus: MessageBus | undefined;
  #connection: MessageConnection<FromMain, FromEdge> | undefined;
  readonly #joined = Promise.withResolvers<void>();
  readonly #loaded = Promise.withResolvers<void>();
  readonly #serving = Promise.withResolvers<void>();
  #isLoaded = false;
  /** Main is of a version that does not write the ring, so nothing is known of its changes. */
  #isForeign = false;
  #isStopped = false;
  /** When main was last heard, or was not there, by `performance.now()`. */
  #heardMs = performance.now();
  /** Since when everything is read again. */
  #readsSinceMs: number | undefined;
  #mainLagSeconds = 0;
  /** The address of main's name server, once this process has joined. */
  dnsAddress = "";

  /** `folder` has the ring and the sockets between the processes. */
  constructor(folder: string, id: number, logger: Logger) {
    this.#folder = folder;
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

  /** Resolves when main is there. Changes wait from then on until `caughtUp` is called. */
  async join(): Promise<void> {
    unawaited(this.#stayConnected());
    await this.#joined.promise;
  }

  subscribe(listeners: ChangeListeners): void {
    this.#listeners = listeners;
  }

  /** Call this when all data is loaded. Resolves when all changes since `join` are in effect. */
  async caughtUp(): Promise<void> {
    this.#isLoaded = true;
    this.#loaded.resolve();
    await this.#serving.promise;
  }

  /** Whether every change that main has acknowledged is in effect here. */
  get isCurrent(): boolean {
    return this.#follower!.isCurrent && !this.#isForeign;
  }

  /** Resolves with true once all changes of before are in effect, or with false after ten seconds. */
  async becomesCurrent(): Promise<boolean> {
    return !this.#isForeign && endsWithin(waitMsMax, this.#follower!.becomesCurrent());
  }

  /** Seconds for which changes of other nodes may be missing. While there is no main, nothing is known of them. */
  get lagSeconds(): number {
    const dueMs = this.#heardMs + silenceMsMax;
    const sinceMs = Math.min(dueMs, this.#readsSinceMs ?? dueMs);
    return Math.max(this.#mainLagSeconds, (performance.now() - sinceMs) / 1000);
  }

  stop(): void {
    this.#isStopped = true;
    this.#follower?.stop();
    this.#connection?.end();
  }

  async #stayConnected(): Promise<void> {
    while (!this.#isStopped) {
      try {
        const socket = await connectTo(channelPath(this.#folder));
        await new Promise<void>((resolve) => {
          const connection = new MessageConnection<FromMain, FromEdge>(socket, (message) =>
            this.#receive(message, connection),
          );
          connection.onEnd(resolve);
          this.#connection = connection;
          connection.send({ say: "hello", version: protocolVersion, id: this.#id });
        });
        this.#connection = undefined;
      } catch (error) {
        // Without a main process, nothing can change.
        if (isAbsent(error)) this.#heardMs = performance.now();
      }
      await delay(againMs);
    }
  }

  #receive(message: FromMain, connection: MessageConnection<FromMain, FromEdge>): void {
    this.#heardMs = performance.now();
    if (message.do === "join") {
      unawaited(this.#join(message, connection));
      return;
    }
    if (!this.#isLoaded) return;
    this.#follower!.look();
    if (message.do === "tell") unawaited(this.#tell(message.position, connection));
    if (message.do !== "beat") return;
    this.#mainLagSeconds = message.lagSeconds;
    this.#sayPosition(connection);
  }

  async #join(
    { version, dns, position, notes }: FromMain & { do: "join" },
    connection: MessageConnection<FromMain, FromEdge>,
  ): Promise<void> {
    if (version !== protocolVersion) {
      this.#refuse(connection);
      return;
    }
    this.#isForeign = false;
    this.dnsAddress = dns;
    const follower = (this.#follower ??= this.#newFollower(position));
    this.#joined.resolve();
    await this.#loaded.promise;
    await follower.reaches(position);
    for (const note of notes) await this.#bus?.deliver(note);
    await follower.becomesCurrent();
    connection.send({ say: "ready" });
    this.#serving.resolve();
  }

  #newFollower(position: number): RingFollower {
    return new RingFollower(new RingReader(ringPath(this.#folder)), position, {
      carryOut: async (record) => this.#carryOut(record),
      readAgain: async () => {
        this.#connection?.end(); // main's messages are lost, too
        await this.#readAgain();
      },
      onFault: (error) =>
        this.#logger.error(
          { err: error },
          "a change could not be applied; this process reads everything again",
        ),
    });
  }

  #refuse(connection: MessageConnection<FromMain, FromEdge>): void {
    connection.end();
    if (this.#isForeign) return; // it has been said
    this.#isForeign = true;
    const error = new Error(
      "The main process and this edge process are of versions that do not work together: restart the node",
    );
    this.#logger.error({ err: error }, "this edge process serves nothing");
    this.#joined.reject(error);
  }

  async #tell(position: number, connection: MessageConnection<FromMain, FromEdge>): Promise<void> {
    await this.#follower!.reaches(position);
    this.#sayPosition(connection);
  }

  #sayPosition(connection: MessageConnection<FromMain, FromEdge>): void {
    const isReading = this.#readsSinceMs !== undefined;
    connection.send({ say: "at", position: this.#follower!.done, isReading });
  }

  async #carryOut(record: RingRecord): Promise<void> {
    switch (record.do) {
      case "change":
        return this.#listeners!.notify(record.changes);
      case "reload":
        return this.#readAgain();
      case "rejoin":
        this.#connection?.end();
        return;
      case "note":
        if (record.except !== this.#id) await this.#bus?.deliver(record);
    }
  }

  async #readAgain(): Promise<void> {
    this.#readsSinceMs ??= performance.now();
    await this.#listeners!.reload();
    this.#readsSinceMs = undefined;
  }
}
