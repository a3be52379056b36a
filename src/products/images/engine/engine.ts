import { availableParallelism } from "node:os";
import type { Logger } from "pino";
import { imageErrors } from "../errors.ts";
import { ImageAdmission, QueueFull } from "./admission.ts";
import { DomainError } from "../../../platform/domain-error.ts";
import type { Cost } from "./cost.ts";
import { ImageProcess, JobFault, JobOverTime, ProcessEnded } from "./image-process.ts";
import type { ImageJob, TimedResult } from "./job.ts";
import { mebibyte } from "../../../platform/bytes.ts";
import { noteRestart } from "../../../platform/util/uncaught.ts";

export interface ImageEngineOptions {
  /** Concurrent jobs. */
  slots?: number | undefined;
  /** Waiting jobs per slot. */
  queuePerSlotMax?: number;
  memoryBytes?: number;
  timeLimitSeconds?: number;
  /** Path of a module that finds faces; see focus.ts. */
  faceDetector?: string | undefined;
  logger: Logger;
}

/** Memory of a typical job, so that machines with many cores can use all slots. */
const slotMemoryBytes = 48 * mebibyte;
export const engineDefaults = {
  queuePerSlotMax: 32,
  memoryBytes: 400 * mebibyte,
  timeLimitSeconds: 8,
};

/** Processes that a job may lose to faults whose cause is unknown. */
const attemptsMax = 5;
/** After this many crashes with a job running alone, its picture is at fault. */
const crashesMax = 2;

/** The account that a job is for, and what it probably takes. */
export interface Charge {
  accountId: string;
  cost: Cost;
}

/** A file of the job no longer exists. */
export class SourceGone extends Error {}

/**
 * Transforms pictures in a separate process, so that no codec runs in the server process and a crash ends
 * only the image process. The process starts with the first job.
 */
export class ImageEngine {
  readonly #logger: Logger;
  readonly #faceDetector: string | undefined;
  readonly #admission: ImageAdmission;
  readonly #slots: number;
  readonly timeLimitSeconds: number;
  #process: ImageProcess | undefined;
  /** Finished jobs by their result. */
  readonly results = { ok: 0, refused: 0, failed: 0 };
  #isClosed = false;

  constructor(options: ImageEngineOptions) {
    this.#logger = options.logger;
    this.#faceDetector = options.faceDetector;
    this.#slots = options.slots ?? availableParallelism();
    this.timeLimitSeconds = options.timeLimitSeconds ?? engineDefaults.timeLimitSeconds;
    this.#admission = new ImageAdmission({
      slots: this.#slots,
      memoryBytes: options.memoryBytes ?? Math.max(engineDefaults.memoryBytes, this.#slots * slotMemoryBytes),
      queueMax: this.#slots * (options.queuePerSlotMax ?? engineDefaults.queuePerSlotMax),
    });
  }

  /** Process id of the image process while it runs; for measurements. */
  get pid(): number | undefined {
    return this.#process?.pid;
  }

  get load(): { running: number; waiting: number } {
    return this.#admission.load;
  }

  /**
   * Runs a job. Throws a `DomainError` for callers, `SourceGone`, the signal's reason, or an internal error for
   * the log. A job whose process ended is retried alone: only a picture that crashes a process by itself is
   * at fault.
   */
  async run(
    parts: Pick<ImageJob, "picture" | "output" | "target">,
    charge: Charge,
    signal?: AbortSignal,
  ): Promise<TimedResult> {
    try {
      const result = await this.#run(parts, charge, signal);
      this.results.ok++;
      return result;
    } catch (error) {
      this.results[error instanceof DomainError ? "refused" : "failed"]++;
      throw error;
    }
  }

  async #run(
    { picture, output, target }: Pick<ImageJob, "picture" | "output" | "target">,
    charge: Charge,
    signal: AbortSignal | undefined,
  ): Promise<TimedResult> {
    const job: ImageJob = { picture, output, target, timeLimitSeconds: this.timeLimitSeconds };
    let crashes = 0;
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#admitted(job, charge, signal, attempt > 1);
      } catch (error) {
        if (!(error instanceof ProcessEnded)) throw this.#visible(error, job);
        if (this.#isClosed) throw imageErrors.unavailable();
        this.#logger.warn(
          { path: picture.path, attempt, err: error },
          "the image process ended during a job",
        );
        if (error.by === "crash" && error.jobs === 1) crashes += 1;
        if (crashes === crashesMax) throw imageErrors.undecodable();
        if (attempt === attemptsMax) throw imageErrors.unavailable();
      }
    }
  }

  /** Ends all jobs. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#process?.end();
  }

  async #admitted(
    job: ImageJob,
    { accountId, cost }: Charge,
    signal: AbortSignal | undefined,
    isAlone: boolean,
  ): Promise<TimedResult> {
    const askedAt = performance.now();
    const end = await this.#admission.enter(accountId, cost, signal, isAlone).catch((error: unknown) => {
      throw error instanceof QueueFull ? imageErrors.busy(error.retryAfterSeconds) : error;
    });
    const admittedAt = performance.now();
    try {
      if (this.#isClosed) throw new ProcessEnded("killed", 1, "the engine is closed");
      const result = await (this.#process ??= this.#start()).run(job);
      const times = { queuedMs: admittedAt - askedAt, workedMs: performance.now() - admittedAt };
      return { ...result, times };
    } finally {
      end();
    }
  }

  #start(): ImageProcess {
    const options = { slots: this.#slots, faceDetector: this.#faceDetector };
    const started: ImageProcess = new ImageProcess(options, () => {
      if (this.#process !== started) return;
      this.#process = undefined;
      if (!this.#isClosed) noteRestart("images");
    });
    return started;
  }

  /** The error for the caller. libvips messages may contain paths, so they only go to the log. */
  #visible(error: unknown, { picture }: ImageJob): unknown {
    if (error instanceof JobOverTime) return imageErrors.tooLong();
    if (!(error instanceof JobFault)) return error;
    const { kind, message } = error;
    if (kind === "time") return imageErrors.tooLong();
    if (kind === "invalid") return imageErrors.invalidTransform(message);
    if (kind === "gone") return new SourceGone("a file of the job no longer exists", { cause: error });
    if (kind === "internal") return new Error("a transform failed", { cause: error });
    this.#logger.info({ path: picture.path, detail: message }, "a picture cannot be decoded");
    return imageErrors.undecodable();
  }
}
