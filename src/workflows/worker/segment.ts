import { Attempt } from "./attempt.ts";
import {
  holdAnswer,
  type CallMessage,
  type Ending,
  type HistoryMessage,
  type NoteMessage,
  type Signal,
  type StartMessage,
} from "./messages.ts";

/** The way to the engine. */
export interface Lane {
  call(message: string): Promise<string>;
  note(message: string): unknown;
  /** Hears what is told to the segment from now on, and what has been told to it before. */
  listen(signal: (signal: Signal) => void): unknown;
}

/** What a segment needs of where it runs; the simulator has its own. */
export interface Host {
  after(ms: number, run: () => void): () => void;
  now(): number;
  /** Whether code that runs now is inside of a step's callback, and a way to run code so. */
  isInsideStep(): boolean;
  insideStep<T>(run: () => T): T;
  isNonRetryable(error: unknown): boolean;
}

/** Never resolves: what a step gets whose segment is over. Each its own: a promise holds all who await it. */
const never = (): Promise<never> => new Promise<never>(() => {});
const startNoteMs = 50;

/**
 * One invocation of an instance's `run`: what it has asked for, what runs, what waits. When nothing runs and something
 * waits for a while, the segment ends; a later one replays the journal and goes on.
 */
export class Segment {
  readonly history: ReadonlyMap<string, HistoryMessage>;
  readonly limits: StartMessage["limits"];
  readonly host: Host;
  /** How the segment ended, unless `run` itself came to an end. */
  readonly ended: Promise<Ending>;
  readonly #lane: Lane;
  readonly #asked = new Set<string>();
  readonly #counts = new Map<string, number>();
  readonly #running = new Set<Attempt>();
  readonly #blocked: (() => void)[] = [];
  #end!: (ending: Ending) => void;
  #isOver = false;
  #isHeld = false;
  #active = 0;
  #waiting = 0;
  #waitingShortly = 0;
  #idleSince = 0;
  #lingering: (() => void) | undefined;
  #noting: (() => void) | undefined;
  #isListening = false;

  constructor(lane: Lane, start: StartMessage, host: Host) {
    this.#lane = lane;
    this.host = host;
    this.limits = start.limits;
    this.history = new Map(start.history.map((entry) => [entry[0], entry]));
    this.ended = new Promise((resolve) => (this.#end = resolve));
    this.#noteLater();
  }

  /** The journal's key for the next call with this name; code that runs again asks in the same order. */
  key(kind: "do" | "sleep" | "waitForEvent", name: string): string {
    const base = `${kind}:${name}`;
    const count = (this.#counts.get(base) ?? 0) + 1;
    this.#counts.set(base, count);
    return this.ask(`${base}-${count}`);
  }

  /** Notes that the code came to what the journal may have under a key. */
  ask(key: string): string {
    this.#asked.add(key);
    return key;
  }

  unasked(): string[] {
    return [...this.history.keys()].filter((key) => !this.#asked.has(key));
  }

  /** Asks the engine for something that takes no time but the disk's. */
  async call(message: CallMessage): Promise<string> {
    if (this.#isOver) return never();
    const answer = await this.#lane.call(JSON.stringify(message));
    if (answer === holdAnswer) this.#isHeld = true;
    return this.#isOver ? never() : answer;
  }

  /** Asks for something that may take very long: so many milliseconds, where that is known. */
  async wait(message: CallMessage, forMs = 0): Promise<string> {
    const isShort = forMs <= this.limits.lingerMs;
    this.#waiting++;
    if (isShort) this.#waitingShortly++;
    this.#linger();
    const answer = await this.call(message);
    this.#waiting--;
    if (isShort) this.#waitingShortly--;
    if (!this.#isListening) this.#noteLater();
    return answer;
  }

  /** Runs an attempt of a step; the segment does not end while it runs. */
  async attempt<T>(note: NoteMessage, timeoutMs: number, run: (attempt: Attempt) => Promise<T>): Promise<T> {
    await this.#gate();
    this.#active++;
    const attempt = new Attempt(note, this.host.now(), timeoutMs);
    this.#running.add(attempt);
    if (timeoutMs <= startNoteMs) attempt.limit(this.host.after, timeoutMs);
    this.#noteLater();
    try {
      return await run(attempt);
    } finally {
      attempt.end();
      this.#running.delete(attempt);
      this.#active--;
      this.#settle();
    }
  }

  signal(signal: Signal): void {
    if (signal === "hold") this.#isHeld = true;
    else if (signal === "release") this.#isHeld = false;
    else this.close();
  }

  /** Nothing that comes after this has an effect. */
  close(ending?: Ending): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#lingering?.();
    this.#noting?.();
    for (const attempt of this.#running) attempt.abort();
    this.#end(ending ?? { end: "held" });
  }

  /** While the instance is to be paused no step begins, but those inside of a running step. */
  async #gate(): Promise<void> {
    while (this.#isHeld && !this.host.isInsideStep() && !this.#isOver) {
      this.#settle();
      await new Promise<void>((resolve) => this.#blocked.push(resolve));
    }
    if (this.#isOver) await never();
  }

  #settle(): void {
    if (this.#isOver || this.#active > 0) return;
    if (this.#isHeld) return this.close({ end: "held" });
    for (const go of this.#blocked.splice(0)) go();
    this.#linger();
  }

  /** Ends the segment when it has been waiting, and nothing else, for a while. */
  #linger(): void {
    this.#idleSince = this.host.now();
    if (this.#lingering !== undefined || this.#isOver) return;
    const look = (): void => {
      this.#lingering = undefined;
      if (this.#isOver || this.#active > 0 || this.#waiting === 0) return;
      const leftMs = this.#idleSince + this.#lingerMs - this.host.now();
      if (leftMs > 0) this.#lingering = this.host.after(leftMs, look);
      else if (this.#isHeld) this.close({ end: "held" });
      else this.close({ end: "suspend", waiting: this.#waiting, unasked: this.unasked() });
    };
    if (this.#waiting > 0) this.#lingering = this.host.after(this.#lingerMs, look);
  }

  /** What surely comes later is not worth a place in memory. */
  get #lingerMs(): number {
    return this.#waitingShortly > 0 ? this.limits.lingerMs : this.limits.lingerMs / 10;
  }

  #noteLater(): void {
    if (!this.#isOver) this.#noting ??= this.host.after(startNoteMs, () => this.#noteStarts());
  }

  /**
   * Looks at what runs: of attempts that take long the engine is told, and from then on their time is measured. Code
   * that has been running for a while must hear signals; what is over sooner, or only waits, need not.
   */
  #noteStarts(): void {
    this.#noting = undefined;
    if (!this.#isListening && (this.#active > 0 || this.#waiting === 0)) {
      this.#isListening = true;
      void this.#lane.listen((signal) => this.signal(signal));
    }
    let isLater = false;
    for (const attempt of this.#running) {
      if (attempt.isNoted) continue;
      const elapsedMs = this.host.now() - attempt.since;
      if (elapsedMs >= startNoteMs) {
        attempt.isNoted = true;
        attempt.limit(this.host.after, attempt.timeoutMs - elapsedMs);
        const [kind, key, number, , config] = attempt.note;
        this.#lane.note(JSON.stringify([kind, key, number, elapsedMs, config]));
      } else isLater = true;
    }
    if (isLater) this.#noteLater();
  }
}
