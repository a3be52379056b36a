import { Worker } from "node:worker_threads";
import { noteUncaught } from "../util/uncaught.ts";
import { moduleUrl } from "../util/module-url.ts";

const restartMs = 1000;

/** Runs the thread that copies a database's log into its file (checkpoint.ts), and restarts it if it dies. */
export class Checkpointer {
  readonly #options: { path: string; intervalMs: number };
  #worker: Worker;
  #isStopping = false;

  constructor(options: { path: string; intervalMs: number }) {
    this.#options = options;
    this.#worker = this.#start();
  }

  /** Copies the whole log into the file and truncates it. Resolves with whether the result is on disk. */
  async renew(): Promise<boolean> {
    const worker = this.#worker;
    return new Promise((resolve) => {
      const end = (isRenewed: boolean): void => {
        worker.off("message", end).off("exit", gone);
        resolve(isRenewed);
      };
      const gone = (): void => end(false);
      worker.on("message", end).on("exit", gone);
      if (worker.threadId < 0) end(false);
      else worker.postMessage("renew", []);
    });
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
    const worker = new Worker(moduleUrl("platform/storage/checkpoint"), {
      workerData: this.#options,
      execArgv: [],
    });
    worker.on("error", (error) => noteUncaught("exception", error));
    worker.once("exit", () => {
      if (this.#isStopping) return;
      setTimeout(() => {
        if (!this.#isStopping) this.#worker = this.#start();
      }, restartMs).unref();
    });
    worker.unref();
    return worker;
  }
}
