import { fork, type ChildProcess } from "node:child_process";
import { existsSync } from "node:fs";
import { getCompileCacheDir } from "node:module";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { ImageJob, ImageReply, Request, ImageResult } from "./job.ts";
import { moduleUrl } from "../../../platform/util/module-url.ts";

export type ImageFault = Extract<ImageReply, { fault: object }>["fault"];

/** A fault of the picture, the options or the file system, reported by the image process. */
export class JobFault extends Error {
  readonly kind: ImageFault["kind"];
  constructor({ kind, message }: ImageFault) {
    super(message);
    this.kind = kind;
  }
}

/** The job exceeded its time limit, and its process was killed. */
export class JobOverTime extends Error {}

/**
 * The process ended before the job did. `crash`: by a fault inside the process, which any of its `jobs` may
 * have caused; `killed`: from outside, for example by the kernel's OOM killer; `unavailable`: it could not
 * start.
 */
export class ProcessEnded extends Error {
  readonly by: "crash" | "killed" | "unavailable";
  readonly jobs: number;
  constructor(by: ProcessEnded["by"], jobs: number, detail: string) {
    super(`the image process ended: ${detail}`);
    this.by = by;
    this.jobs = jobs;
  }
}

export interface ImageProcessOptions {
  /** Concurrent jobs. */
  slots: number;
  /** Path of a module that finds faces; see focus.ts. */
  faceDetector: string | undefined;
}

interface Pending {
  resolve(result: ImageResult): void;
  reject(error: Error): void;
  deadline: NodeJS.Timeout;
}

/** Time for libvips to end a job by itself, before the whole process is killed. */
const graceMs = 1000;
/** Threads of the process besides those of its jobs. */
const spareThreads = 4;
const jemalloc = [
  "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2",
  "/usr/lib/aarch64-linux-gnu/libjemalloc.so.2",
];
/** Signals that a process raises by its own faults; other processes send all other signals. */
const crashSignals: ReadonlySet<string> = new Set([
  "SIGSEGV",
  "SIGBUS",
  "SIGABRT",
  "SIGILL",
  "SIGFPE",
  "SIGTRAP",
  "SIGSYS",
]);

/** The parent's side of one image process. When the process ends, its jobs are rejected. */
export class ImageProcess {
  readonly #child: ChildProcess;
  readonly #pending = new Map<number, Pending>();
  readonly #onUnusable: () => void;
  readonly exited: Promise<void>;
  #lastId = 0;
  #isOverTime = false;

  /** `onUnusable` is called once the process accepts no more jobs, possibly before its exit. */
  constructor(options: ImageProcessOptions, onUnusable: () => void) {
    this.#onUnusable = onUnusable;
    const child = (this.#child = start(options));
    child.on("message", (reply: ImageReply) => {
      const pending = this.#settle(reply.id);
      if (pending === undefined) return;
      if ("result" in reply) pending.resolve(reply.result);
      else pending.reject(new JobFault(reply.fault));
    });
    const { promise, resolve } = Promise.withResolvers<void>();
    this.exited = promise;
    // The channel may close before the system reports the exit.
    child.on("disconnect", () => this.#kill());
    child.on("error", (error) => {
      if (child.pid !== undefined) return this.#kill();
      this.#rejectAll("unavailable", error.message);
      resolve();
    });
    child.on("exit", (code, signal) => {
      const isCrash = !this.#isOverTime && (signal === null ? code !== 0 : crashSignals.has(signal));
      this.#rejectAll(isCrash ? "crash" : "killed", signal ?? `exit code ${code}`);
      resolve();
    });
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** Rejects with a `JobFault`, `JobOverTime` or `ProcessEnded`. */
  run(job: ImageJob): Promise<ImageResult> {
    const id = ++this.#lastId;
    const { promise, resolve, reject } = Promise.withResolvers<ImageResult>();
    // The time limit of libvips does not cover reading headers and some encoders.
    const deadline = setTimeout(
      () => {
        this.#settle(id)?.reject(new JobOverTime("the image process did not respond in time"));
        this.#isOverTime = true;
        this.#kill();
      },
      job.timeLimitSeconds * 1000 + graceMs,
    );
    this.#pending.set(id, { resolve, reject, deadline });
    // When a job cannot be sent, it is rejected at the exit of the process, when the reason is known. Without
    // a pid there is no channel, and the "error" event follows.
    if (this.#child.pid !== undefined)
      this.#child.send({ id, job } satisfies Request, (error) => {
        if (error !== null) this.#kill();
      });
    return promise;
  }

  /** Ends the process and all its jobs. */
  async end(): Promise<void> {
    this.#kill();
    await this.exited;
  }

  /** Harmless after the process has exited. */
  #kill(): void {
    this.#onUnusable();
    this.#child.kill("SIGKILL");
  }

  #rejectAll(by: ProcessEnded["by"], detail: string): void {
    this.#onUnusable();
    const error = new ProcessEnded(by, this.#pending.size, detail);
    for (const id of [...this.#pending.keys()]) this.#settle(id)?.reject(error);
  }

  #settle(id: number): Pending | undefined {
    const pending = this.#pending.get(id);
    if (pending !== undefined) clearTimeout(pending.deadline);
    this.#pending.delete(id);
    return pending;
  }
}

function start({ slots, faceDetector }: ImageProcessOptions): ChildProcess {
  // With cached compiled code, the process need not load the compiler, which saves 30 MB.
  const compileCache = getCompileCacheDir();
  return fork(moduleUrl("products/images/engine/process"), [], {
    serialization: "advanced",
    // The environment of the platform may hold secrets, so none of it is passed on.
    env: {
      UV_THREADPOOL_SIZE: String(slots + spareThreads),
      ...allocator(slots),
      ...(compileCache === undefined ? {} : { NODE_COMPILE_CACHE: compileCache }),
      ...(faceDetector === undefined ? {} : { FACE_DETECTOR: pathToFileURL(resolve(faceDetector)).href }),
    },
    execArgv: ["--max-semi-space-size=1", "--max-old-space-size=256"],
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
}

/**
 * Images allocate and free large blocks, so the allocator uses few arenas and returns unused memory after a
 * second.
 */
export function allocator(slots: number): Record<string, string> {
  const preload = jemalloc.find((path) => existsSync(path));
  if (preload === undefined) return { MALLOC_ARENA_MAX: "2" };
  const pools = `narenas:${Math.max(2, slots)}`;
  return { LD_PRELOAD: preload, MALLOC_CONF: `${pools},dirty_decay_ms:1000,muzzy_decay_ms:0` };
}
