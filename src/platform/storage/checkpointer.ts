import { Worker } from "node:worker_threads";
import { noteRestart, noteUncaught } from "../util/uncaught.ts";
import { moduleUrl } from "../util/module-url.ts";

const restartMs = 1000;

/** The parameters of the thread for checkpoints. */
export interface CheckpointOptions {
  path: string;
  intervalMs: number;
}

/** A thread that makes checkpoints in place of checkpoint.ts, and follows the log. */
export interface LogFollower {
  /** The thread's module, for moduleUrl(). */
  module: string;
  /** The thread's `workerData`, to which a descriptor of the log's index is added. */
  data: object;
  /** The file for the times of commits. */
  timesPath: string;
  /** Gets the thread's messages. */
  onMessage(message: object): void;
}

/** Runs the thread that copies a database's log into its file (checkpoint.ts), and restarts it if it dies. */
export class Checkpointer {
  readonly #options: CheckpointOptions;
  readonly #follower: LogFollower | undefined;
  #worker: Worker;
  #isStopping = false;

  constructor(options: CheckpointOptions, follower?: LogFollower) {
    this.#options = options;
    this.#follower = follower;
    this.#worker = this.#start();
  }

  /** Copies the whole log into the file and truncates it. Resolves with whether the result is on disk. */
  async renew(): Promise<boolean> {
    const worker = this.#worker;
    return new Promise((resolve) => {
      const end = (isRenewed: unknown): void => {
        if (typeof isRenewed !== "boolean") return; // reports of a follower
        worker.off("message", end).off("exit", gone);
        resolve(isRenewed);
      };
      const gone = (): void => end(false);
      worker.on("message", end).on("exit", gone);
      if (worker.threadId < 0) end(false);
      else worker.postMessage("renew", []);
    });
  }

  /** Sends a message to the thread that follows the log. */
  post(message: object): void {
    if (this.#worker.threadId >= 0) this.#worker.postMessage(message, []);
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    const worker = this.#worker;
    if (worker.threadId < 0) return;
    worker.ref();
    worker.postMessage("stop", []);
    await new Promise<void>((resolve) => worker.once("exit", () => resolve()));
  }

  #start(): Worker {
    const follower = this.#follower;
    const worker = new Worker(moduleUrl(follower?.module ?? "platform/storage/checkpoint"), {
      workerData: { ...this.#options, ...follower?.data },
      execArgv: [],
    });
    worker.on("message", (message: unknown) => {
      if (typeof message === "object" && message !== null) follower?.onMessage(message);
    });
    worker.on("error", (error) => noteUncaught("exception", error));
    worker.once("exit", () => {
      if (this.#isStopping) return;
      noteRestart("checkpoints");
      setTimeout(() => {
        if (!this.#isStopping) this.#worker = this.#start();
      }, restartMs).unref();
    });
    worker.unref();
    return worker;
  }
}
