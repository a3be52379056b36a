import type { Socket } from "node:net";
import { beatMs, MessageConnection, silenceMsMax, type FromEdge, type FromMain } from "./protocol.ts";

/** An edge process, as main sees it. */
export class FleetMember {
  readonly connection: MessageConnection<FromEdge, FromMain>;
  id = 0;
  /** Whether it serves visitors. Before that, it reads everything, and does not answer. */
  isServing = false;
  #hasAnswered = false;
  readonly #readMsMax: number;
  #beatAtMs = -Infinity;
  /** When the oldest beat without an answer was sent. */
  #askedMs: number | undefined;
  /** The position of the ring that it has reached. */
  #position = 0;
  /** The position that it is to reach, since a time. */
  #goal = { position: 0, sinceMs: performance.now() };
  /** It reads everything again until this position. */
  #readsUntil = 0;
  #isReading = false;
  #waiting: { position: number; resolve: () => void }[] = [];

  /** `readMsMax` is the longest time for reading everything. */
  constructor(socket: Socket, readMsMax: number, onMessage: (message: FromEdge) => void) {
    this.#readMsMax = readMsMax;
    this.connection = new MessageConnection(socket, onMessage);
  }

  /** Asks where it is, unless it was asked a moment ago. */
  beat(end: number, lagSeconds: number): void {
    const nowMs = performance.now();
    if (nowMs - this.#beatAtMs < beatMs) return;
    this.#beatAtMs = nowMs;
    this.#askedMs ??= nowMs;
    if (this.#position >= this.#goal.position) this.#goal = { position: end, sinceMs: nowMs };
    this.connection.send({ do: "beat", lagSeconds });
  }

  mayReadUntil(position: number): void {
    this.#readsUntil = position;
  }

  /** Its answer. */
  isAt({ position, isReading }: { position: number; isReading: boolean }): void {
    const couldRead = this.#mayRead;
    this.#askedMs = undefined;
    this.#position = position;
    this.#isReading = isReading;
    this.#hasAnswered ||= this.isServing;
    // Changes that have come meanwhile take time again.
    if (couldRead && !this.#mayRead) this.#goal.sinceMs = performance.now();
    this.#waiting = this.#waiting.filter((each) => {
      if (each.position <= position) each.resolve();
      return each.position > position;
    });
  }

  /** Resolves when it has reached a position. Does not wait for one that reads everything. */
  async reaches(position: number): Promise<void> {
    if (!this.isServing || this.#readsAgain) return;
    this.connection.send({ do: "tell", position });
    await new Promise<void>((resolve) => this.#waiting.push({ position, resolve }));
  }

  /** Whether it does not answer, or does not get on. */
  get isStalled(): boolean {
    const sinceMs = Math.min(
      this.#askedMs ?? Infinity,
      // An answer is from before it has looked, so the next one shows the changes.
      this.#position < this.#goal.position ? this.#goal.sinceMs + beatMs : Infinity,
    );
    return performance.now() - sinceMs > (this.#mayRead ? this.#readMsMax : silenceMsMax);
  }

  /** It has left. */
  leave(): void {
    for (const { resolve } of this.#waiting.splice(0)) resolve();
  }

  get #readsAgain(): boolean {
    return this.#isReading || this.#position < this.#readsUntil;
  }

  get #mayRead(): boolean {
    return !this.#hasAnswered || this.#readsAgain;
  }
}
