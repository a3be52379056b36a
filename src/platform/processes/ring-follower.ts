import { setTimeout as delay } from "node:timers/promises";
import { unawaited } from "../util/uncaught.ts";
import type { RingRecord } from "./protocol.ts";
import type { RingReader } from "./ring.ts";

const againMs = 100;

export interface RingDuties {
  carryOut: (record: RingRecord) => Promise<void>;
  /** Reads everything again, because records are lost or one could not be carried out. */
  readAgain: () => Promise<void>;
  onFault: (error: unknown) => void;
}

/** Carries out the records of a ring in their order, one at a time. */
export class RingFollower {
  readonly #reader: Pick<RingReader, "isDone" | "head" | "take">;
  readonly #duties: RingDuties;
  /** The position up to which everything is in effect. */
  #done: number;
  #isWorking = false;
  #isStopped = false;
  #waiting: { position: number; resolve: () => void }[] = [];

  /** `from` is the position of the data that is in memory, or will be before the first call of `look`. */
  constructor(reader: Pick<RingReader, "isDone" | "head" | "take">, from: number, duties: RingDuties) {
    this.#reader = reader;
    this.#done = from;
    this.#duties = duties;
  }

  get done(): number {
    return this.#done;
  }

  /** Whether everything is in effect that main has promised. Reads the ring, so no message has to arrive first. */
  get isCurrent(): boolean {
    return this.#reader.isDone(this.#done);
  }

  /** Resolves when everything is in effect that was due at the call. */
  async becomesCurrent(): Promise<void> {
    await this.reaches(this.#reader.head.due);
  }

  /** Resolves when everything up to a position is in effect. */
  async reaches(position: number): Promise<void> {
    this.look();
    if (position > this.#done)
      await new Promise<void>((resolve) => this.#waiting.push({ position, resolve }));
  }

  /** Carries out what is new. */
  look(): void {
    if (this.#isWorking) return;
    this.#isWorking = true;
    unawaited(this.#work());
  }

  stop(): void {
    this.#isStopped = true;
  }

  async #work(): Promise<void> {
    while (!this.#isStopped) {
      try {
        const lines = this.#reader.take(this.#done);
        if (lines === undefined) throw new Error("too many changes have come for this process");
        if (lines.length === 0) {
          this.#isWorking = false; // at once, so that a later call of `look` is not in vain
          return;
        }
        for (const { text, end } of lines) {
          await this.#duties.carryOut(JSON.parse(text) as RingRecord);
          this.#noteDone(end);
        }
      } catch (error) {
        this.#duties.onFault(error);
        await this.#recover();
      }
    }
  }

  async #recover(): Promise<void> {
    while (!this.#isStopped) {
      const { end } = this.#reader.head;
      try {
        await this.#duties.readAgain();
        this.#noteDone(end);
        return;
      } catch (error) {
        this.#duties.onFault(error);
        await delay(againMs);
      }
    }
  }

  #noteDone(position: number): void {
    this.#done = Math.max(this.#done, position);
    if (this.#waiting.length === 0) return;
    const isDone = (each: { position: number }): boolean => each.position <= this.#done;
    const ready = this.#waiting.filter(isDone);
    this.#waiting = this.#waiting.filter((each) => !isDone(each));
    for (const { resolve } of ready) resolve();
  }
}
