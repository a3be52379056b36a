import { fork, type ChildProcess } from "node:child_process";
import { existsSync } from "node:fs";
import { getCompileCacheDir } from "node:module";
import { availableParallelism } from "node:os";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { Logger } from "pino";
import { imageErrors } from "../errors.ts";
import { Admission, QueueFull } from "./admission.ts";
import type { Cost } from "./cost.ts";
import type { Job, Reply, Request, Result } from "./job.ts";

export interface EngineOptions {
  /** Jobs at a time. */
  slots?: number | undefined;
  /** Jobs that wait, for each slot. */
  queuePerSlotMax?: number;
  memoryBytes?: number;
  timeLimitSeconds?: number;
  /** File of a module that finds faces; see focus.ts. */
  faceDetector?: string | undefined;
  logger: Logger;
}

const mebibyte = 1024 * 1024;
/** An ordinary job's, so that all slots can work on machines with many. */
const slotMemoryBytes = 48 * mebibyte;
export const engineDefaults = {
  queuePerSlotMax: 32,
  memoryBytes: 400 * mebibyte,
  timeLimitSeconds: 8,
};

/** In which the library ends a job by itself, and leaves the others in the process alone. */
const graceMs = 1000;
/** What the engine's process keeps to itself beside the pixels of its jobs. */
const spareThreads = 4;
const jemalloc = [
  "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2",
  "/usr/lib/aarch64-linux-gnu/libjemalloc.so.2",
];

interface Pending {
  resolve(result: Result): void;
  reject(error: Error): void;
  deadline: NodeJS.Timeout;
}

/** The process ended under a job: by this one or by another. */
class ProcessEnded extends Error {
  readonly isOverTime: boolean;
  constructor(isOverTime: boolean) {
    super("the image process ended");
    this.isOverTime = isOverTime;
  }
}

/**
 * Transforms pictures in a process of its own: no codec runs where requests are served, and a fault of one ends that
 * process only. It starts with the first job.
 */
export class Engine {
  readonly #options: EngineOptions;
  readonly #admission: Admission;
  readonly #slots: number;
  readonly timeLimitSeconds: number;
  readonly #pending = new Map<number, Pending>();
  #child: ChildProcess | undefined;
  #lastId = 0;
  #isClosed = false;

  constructor(options: EngineOptions) {
    this.#options = options;
    this.#slots = options.slots ?? availableParallelism();
    this.timeLimitSeconds = options.timeLimitSeconds ?? engineDefaults.timeLimitSeconds;
    this.#admission = new Admission({
      slots: this.#slots,
      memoryBytes: options.memoryBytes ?? Math.max(engineDefaults.memoryBytes, this.#slots * slotMemoryBytes),
      queueMax: this.#slots * (options.queuePerSlotMax ?? engineDefaults.queuePerSlotMax),
    });
  }

  /** The process id while there is a process; for those who measure. */
  get pid(): number | undefined {
    return this.#child?.pid;
  }

  get load(): { running: number; waiting: number } {
    return this.#admission.load;
  }

  /** Throws an `ApiError` that says why there is no result, or the signal's reason. */
  async run(
    { picture, output, target }: Pick<Job, "picture" | "output" | "target">,
    cost: Cost,
    signal?: AbortSignal,
  ): Promise<Result> {
    const job: Job = { picture, output, target, timeLimitSeconds: this.timeLimitSeconds };
    try {
      return await this.#admitted(job, cost, signal, false);
    } catch (error) {
      if (!(error instanceof ProcessEnded) || this.#isClosed) throw error;
      if (error.isOverTime) throw imageErrors.tooLong();
      // Several jobs were in it, and one of them is at fault: each has another try, with the process to itself.
      this.#options.logger.warn(
        { path: picture.path },
        "the image process ended under a job; trying it alone",
      );
    }
    try {
      return await this.#admitted(job, cost, signal, true);
    } catch (error) {
      if (!(error instanceof ProcessEnded)) throw error;
      throw error.isOverTime ? imageErrors.tooLong() : imageErrors.undecodable("the decoder failed");
    }
  }

  /** Gives up all jobs. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const child = this.#child;
    if (child === undefined) return;
    const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
    child.kill("SIGKILL");
    await exited;
  }

  async #admitted(job: Job, cost: Cost, signal: AbortSignal | undefined, isAlone: boolean): Promise<Result> {
    const end = await this.#admission.enter(cost, signal, isAlone).catch((error: unknown) => {
      throw error instanceof QueueFull ? imageErrors.busy(error.retryAfterSeconds) : error;
    });
    try {
      return await this.#send(job);
    } finally {
      end();
    }
  }

  async #send(job: Job): Promise<Result> {
    if (this.#isClosed) throw new ProcessEnded(false);
    const child = (this.#child ??= this.#start());
    const id = ++this.#lastId;
    const { promise, resolve, reject } = Promise.withResolvers<Result>();
    // The library's own limit does not hold while it reads a header, nor inside of some encoders.
    const deadline = setTimeout(
      () => {
        reject(new ProcessEnded(true));
        this.#pending.delete(id);
        child.kill("SIGKILL");
      },
      job.timeLimitSeconds * 1000 + graceMs,
    );
    this.#pending.set(id, { resolve, reject, deadline });
    child.send({ id, job } satisfies Request, (error) => {
      if (error !== null) this.#settle(id)?.reject(new ProcessEnded(false));
    });
    return promise;
  }

  #settle(id: number): Pending | undefined {
    const pending = this.#pending.get(id);
    if (pending !== undefined) clearTimeout(pending.deadline);
    this.#pending.delete(id);
    return pending;
  }

  #start(): ChildProcess {
    const { faceDetector } = this.#options;
    // With what is compiled already the compiler itself stays out of the process, and its 30 MB with it.
    const compileCache = getCompileCacheDir();
    const child = fork(new URL("./process.ts", import.meta.url), [], {
      serialization: "advanced",
      // Nothing of the platform's environment, in which there may be secrets.
      env: {
        UV_THREADPOOL_SIZE: String(this.#slots + spareThreads),
        ...allocator(this.#slots),
        ...(compileCache === undefined ? {} : { NODE_COMPILE_CACHE: compileCache }),
        ...(faceDetector === undefined ? {} : { FACE_DETECTOR: pathToFileURL(resolve(faceDetector)).href }),
      },
      execArgv: ["--max-semi-space-size=1", "--max-old-space-size=256"],
      stdio: ["ignore", "ignore", "inherit", "ipc"],
    });
    child.on("message", (reply: Reply) => {
      const pending = this.#settle(reply.id);
      if (pending === undefined) return;
      if ("result" in reply) pending.resolve(reply.result);
      else pending.reject(fault(reply.fault));
    });
    child.on("error", (error) => this.#options.logger.error({ err: error }, "the image process failed"));
    child.on("exit", () => {
      if (this.#child === child) this.#child = undefined;
      for (const id of [...this.#pending.keys()]) this.#settle(id)?.reject(new ProcessEnded(false));
    });
    return child;
  }
}

/** Pixels come and go in large pieces: an allocator that keeps few pools, and gives back what lies unused for a second. */
export function allocator(slots: number): Record<string, string> {
  const preload = jemalloc.find((path) => existsSync(path));
  if (preload === undefined) return { MALLOC_ARENA_MAX: "2" };
  const pools = `narenas:${Math.max(2, slots)}`;
  return { LD_PRELOAD: preload, MALLOC_CONF: `${pools},dirty_decay_ms:1000,muzzy_decay_ms:0` };
}

function fault({ kind, message }: Extract<Reply, { fault: object }>["fault"]): Error {
  if (kind === "time") return imageErrors.tooLong();
  if (kind === "undecodable") return imageErrors.undecodable(message);
  if (kind === "invalid") return imageErrors.invalidTransform(message);
  return new Error(`a transform failed: ${message}`);
}
