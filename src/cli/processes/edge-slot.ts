import type { Logger } from "pino";
import { vital } from "../../platform/util/uncaught.ts";
import type { SupervisedProcess } from "./supervised-process.ts";

export interface SlotOptions {
  logger: Logger;
  start: () => SupervisedProcess;
  isStopping: () => boolean;
  /** Waits before an ended process is started again. Resolves with false if it must not be. */
  mayStartAgain: (ended: SupervisedProcess) => Promise<boolean>;
  /** Stops a process that was replaced. */
  leave: (replaced: SupervisedProcess) => void;
}

/** The slot of one edge process: starts another process when it ends, and replaces it on demand. */
export class EdgeSlot {
  readonly #options: SlotOptions;
  #current!: SupervisedProcess;
  /** The replacement, while it starts. */
  #next: SupervisedProcess | undefined;

  constructor(options: SlotOptions) {
    this.#options = options;
    this.#begin(options.start());
  }

  /** The process that serves, or is starting. */
  get current(): SupervisedProcess {
    return this.#current;
  }

  get processes(): SupervisedProcess[] {
    return [this.#current, ...(this.#next === undefined ? [] : [this.#next])].filter(
      ({ isAlive }) => isAlive,
    );
  }

  /** Starts a replacement and stops the old process once it is ready. Resolves with whether it was. Call once at a time. */
  async replace(): Promise<boolean> {
    if (!this.#current.isAlive) return true; // another one is about to start
    const next = (this.#next = this.#options.start());
    const isReady = await next.ready;
    this.#next = undefined;
    const old = this.#current;
    if (isReady) {
      this.#begin(next);
      if (old.isAlive) this.#options.leave(old);
      return true;
    }
    this.#options.logger.error("a new edge process did not start; the old ones continue");
    if (!old.isAlive) vital("the supervision of an edge process", this.#startAgain(old));
    return false;
  }

  #begin(child: SupervisedProcess): void {
    this.#current = child;
    vital("the supervision of an edge process", this.#keep(child));
  }

  async #keep(child: SupervisedProcess): Promise<void> {
    const code = await child.exited;
    const { isStopping, logger } = this.#options;
    if (this.#current !== child || isStopping()) return;
    const process = `edge ${child.supervised.id}`;
    logger.error({ process, code }, "a process has ended and is started again");
    if (this.#next === undefined) await this.#startAgain(child);
  }

  async #startAgain(ended: SupervisedProcess): Promise<void> {
    if (await this.#options.mayStartAgain(ended)) this.#begin(this.#options.start());
  }
}
