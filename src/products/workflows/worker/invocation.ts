import { Attempt } from "./attempt.ts";
import { Mocks } from "./mocks.ts";
import {
  callText,
  pauseReply,
  noteText,
  type CallMessage,
  type Ending,
  type HistoryMessage,
  type NoteMessage,
  type Signal,
  type StartMessage,
} from "./messages.ts";

/** The connection of an invocation to the engine. */
export interface EnginePort {
  call(message: string): Promise<string>;
  note(message: string): unknown;
  /** Delivers all signals to the invocation, including earlier ones. */
  listen(signal: (signal: Signal) => void): unknown;
}

/** The environment of an invocation; the simulator has its own. */
export interface InvocationHost {
  after(ms: number, run: () => void): () => void;
  now(): number;
  /** Whether the running code is inside a step's callback, and a way to run code as such. */
  isInsideStep(): boolean;
  insideStep<T>(run: () => T): T;
  isNonRetryable(error: unknown): boolean;
}

/**
 * A promise that never resolves, for steps of an ended invocation. A shared one would keep all awaiting code
 * in memory.
 */
const never = (): Promise<never> => new Promise<never>(() => {});
const startNoteMs = 50;
const unaskedMax = 10;

/**
 * One run of an instance's `run` method from its journal on, with its open calls, attempts and waits. It ends
 * once only waits are left for a while; a later invocation replays the journal and continues.
 */
export class Invocation {
  readonly history: ReadonlyMap<string, HistoryMessage>;
  readonly limits: StartMessage["limits"];
  /** Undefined without the test kit. */
  readonly mocks: Mocks | undefined;
  readonly host: InvocationHost;
  /** Resolves with the ending, unless `run` itself returned or threw. */
  readonly ended: Promise<Ending>;
  readonly #port: EnginePort;
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

  constructor(port: EnginePort, start: StartMessage, host: InvocationHost) {
    this.#port = port;
    this.host = host;
    this.limits = start.limits;
    this.mocks = start.mocks === undefined ? undefined : new Mocks(start.mocks);
    this.history = new Map(start.history.map((entry) => [entry[0], entry]));
    this.ended = new Promise((resolve) => (this.#end = resolve));
    this.#noteLater();
  }

  /** The journal key of the next call with this name. Replays make calls in the same order. */
  key(kind: "do" | "sleep" | "waitForEvent", name: string): string {
    const base = `${kind}:${name}`;
    const count = (this.#counts.get(base) ?? 0) + 1;
    this.#counts.set(base, count);
    return this.ask(`${base}-${count}`);
  }

  /** Records that the code has reached a key of the journal. */
  ask(key: string): string {
    this.#asked.add(key);
    return key;
  }

  /** The first keys of the journal that the code has not reached; as many as the warning lists. */
  unasked(): string[] {
    const keys: string[] = [];
    for (const key of this.history.keys()) {
      if (!this.#asked.has(key)) keys.push(key);
      if (keys.length === unaskedMax) break;
    }
    return keys;
  }

  /** Sends a call that takes only as long as a write to disk. */
  async call(message: CallMessage): Promise<string> {
    if (this.#isOver) return never();
    const answer = await this.#port.call(callText(message));
    if (answer === pauseReply) this.#isHeld = true;
    return this.#isOver ? never() : answer;
  }

  /** Sends a call that may wait for long: `forMs` milliseconds, when known. */
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

  /** Runs an attempt of a step. The invocation does not end while it runs. */
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

  /** Ends the invocation; later calls have no effect. */
  close(ending?: Ending): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#lingering?.();
    this.#noting?.();
    for (const attempt of this.#running) attempt.abort();
    this.#end(ending ?? { end: "held" });
  }

  /** Holds back new steps during a pause, except for those inside a running step. */
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

  /** Ends the invocation after it has only waited for a while. */
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

  /** A long wait is not worth the memory of the invocation. */
  get #lingerMs(): number {
    return this.#waitingShortly > 0 ? this.limits.lingerMs : this.limits.lingerMs / 10;
  }

  #noteLater(): void {
    if (!this.#isOver) this.#noting ??= this.host.after(startNoteMs, () => this.#noteStarts());
  }

  /**
   * Checks the running attempts. Long attempts are reported to the engine, and their timeout starts. Code
   * that has run for a while must receive signals; shorter or waiting invocations need none.
   */
  #noteStarts(): void {
    this.#noting = undefined;
    if (!this.#isListening && (this.#active > 0 || this.#waiting === 0)) {
      this.#isListening = true;
      this.#port.listen((signal) => this.signal(signal));
    }
    let isLater = false;
    for (const attempt of this.#running) {
      if (attempt.isNoted) continue;
      const elapsedMs = this.host.now() - attempt.since;
      if (elapsedMs >= startNoteMs) {
        attempt.isNoted = true;
        attempt.limit(this.host.after, attempt.timeoutMs - elapsedMs);
        const [kind, key, number, , config] = attempt.note;
        this.#port.note(noteText([kind, key, number, elapsedMs, config]));
      } else isLater = true;
    }
    if (isLater) this.#noteLater();
  }
}
