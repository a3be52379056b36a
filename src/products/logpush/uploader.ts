import { createReadStream, createWriteStream } from "node:fs";
import { rm, stat } from "node:fs/promises";
import { createHash } from "node:crypto";
import { Readable, Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import type { Logger } from "pino";
import { endsWithin } from "../../platform/util/ends-within.ts";
import { readDestination } from "./destination/destination.ts";
import { dayOf, deliver, type LogFile } from "./destination/deliver.ts";
import { UploadFault, type LogSender } from "./destination/send.ts";
import type { ActiveJob } from "./job.ts";
import type { LogpushJobs } from "./jobs.ts";
import type { ReadySegment, LogSpool } from "./spool/spool.ts";

/**
 * Maximum numbers of concurrent uploads, in total and of one account. They are limited because destinations
 * may be slow.
 */
const atOnce = { max: 16, ofAccountMax: 4 };
/** How long a job uploads before a waiting job gets its slot. */
const turnMs = 5000;
const fullMessage = "The spool of the job is full, and new events are dropped.";
const droppedMessage = "Events were dropped, because the spool of the job was full or its disk too slow.";
const backoffMs = { first: 1000, max: 5 * 60_000 };

export interface UploaderOptions {
  jobs: LogpushJobs;
  spool: LogSpool;
  sender: LogSender;
  logger: Logger;
  /** A job is disabled after its uploads have only failed for this time. */
  disableAfterMs: number;
}

/** Uploads the segments of all processes of this node, those of each job in order. */
export class Uploader {
  readonly #jobs: LogpushJobs;
  readonly #spool: LogSpool;
  readonly #sender: LogSender;
  readonly #logger: Logger;
  readonly #disableAfterMs: number;
  /** By job: the number of failures in a row, and when the next attempt is due. */
  readonly #failures = new Map<number, { count: number; againAtMs: number }>();
  readonly #inFlight = new Map<number, { accountId: string; done: Promise<void> }>();
  /** The number of the turn in which a job last began to upload. */
  readonly #turns = new Map<number, number>();
  /** Jobs that say that their events are dropped. */
  readonly #full = new Set<number>();
  #turn = 0;
  readonly #stopping = new AbortController();
  readonly counts = { uploads: 0, failures: 0, bytes: 0 };

  constructor({ jobs, spool, sender, logger, disableAfterMs }: UploaderOptions) {
    this.#jobs = jobs;
    this.#spool = spool;
    this.#sender = sender;
    this.#logger = logger;
    this.#disableAfterMs = disableAfterMs;
  }

  /** Starts the uploads that are due. The jobs that have waited longest come first. */
  async tick(): Promise<void> {
    const turnOf = ({ id }: ActiveJob): number => this.#turns.get(id) ?? 0;
    for (const job of this.#jobs.active.toSorted((a, b) => turnOf(a) - turnOf(b))) {
      if (this.#isFull || this.#stopping.signal.aborted) return;
      if (!this.#isDue(job)) continue;
      const segments = await this.#spool.ready(job);
      if (segments.length === 0) continue;
      this.#turns.set(job.id, ++this.#turn);
      const done = this.#uploadAll(job, segments)
        .catch((error: unknown) =>
          this.#logger.warn({ err: error, job: job.id }, "an upload of Logpush failed"),
        )
        .finally(() => this.#inFlight.delete(job.id));
      this.#inFlight.set(job.id, { accountId: job.accountId, done });
    }
  }

  get #isFull(): boolean {
    return this.#inFlight.size >= atOnce.max;
  }

  #isFullFor(accountId: string): boolean {
    const ofAccount = this.#inFlight.values().filter((each) => each.accountId === accountId);
    return this.#isFull || ofAccount.toArray().length >= atOnce.ofAccountMax;
  }

  #isDue({ id, accountId }: ActiveJob): boolean {
    if (this.#inFlight.has(id) || (this.#failures.get(id)?.againAtMs ?? 0) > performance.now()) return false;
    return !this.#isFullFor(accountId);
  }

  /** Uploads everything that is ready. Aborts the remaining uploads after `deadlineMs`; their segments stay. */
  async stop(deadlineMs: number): Promise<void> {
    await endsWithin(deadlineMs, this.#drain());
    this.#stopping.abort();
    await this.#ended();
  }

  async #ended(): Promise<void> {
    await Promise.all(this.#inFlight.values().map(async ({ done }) => done));
  }

  /** Number of jobs whose last upload failed. */
  get failing(): number {
    return this.#failures.size;
  }

  /** Uploads all ready segments, except those of jobs whose last upload failed. */
  async #drain(): Promise<void> {
    do {
      await this.#ended();
      await this.tick();
    } while (this.#inFlight.size > 0);
  }

  async #uploadAll(job: ActiveJob, segments: readonly ReadySegment[]): Promise<void> {
    const turnEnd = performance.now() + turnMs;
    for (const segment of segments) {
      if (this.#stopping.signal.aborted) return;
      try {
        await this.#upload(job, segment);
      } catch (error) {
        if (!this.#stopping.signal.aborted) await this.#noteFailure(job, error);
        return;
      }
      if (performance.now() > turnEnd && this.#isFullFor(job.accountId)) return;
    }
  }

  async #upload(job: ActiveJob, segment: ReadySegment): Promise<void> {
    const { size, mtimeMs } = await stat(segment.path);
    if (size > 0) {
      const packed = `${segment.path}.gz`;
      const delivery = await pack(segment, packed, mtimeMs, job);
      await deliver(this.#sender, readDestination(job.destination), delivery, this.#stopping.signal);
      await rm(packed, { force: true });
      this.counts.uploads++;
      this.counts.bytes += delivery.sizeBytes;
    }
    await this.#spool.remove(job, segment);
    this.#failures.delete(job.id);
    this.#full.delete(job.id);
    await this.#jobs.noteComplete(job.id, mtimeMs);
  }

  async #noteFailure(job: ActiveJob, error: unknown): Promise<void> {
    if (!(error instanceof UploadFault))
      this.#logger.warn({ err: error, job: job.id }, "an upload of Logpush failed");
    const count = (this.#failures.get(job.id)?.count ?? 0) + 1;
    // Full jitter, so that jobs that failed together do not retry together.
    const waitMs = Math.min(backoffMs.max, backoffMs.first * 2 ** count) * (0.5 + Math.random() / 2);
    this.#failures.set(job.id, { count, againAtMs: performance.now() + waitMs });
    this.counts.failures++;
    const why =
      error instanceof UploadFault ? error.message : "the events could not be read from the data folder";
    const full = this.#spool.hasRoom(job) ? "" : ` ${fullMessage}`;
    await this.#jobs.noteFailure(job, `The last upload failed: ${why}.${full}`, this.#disableAfterMs);
  }

  /** Takes over the segments of ended processes, and removes the folders of deleted jobs. */
  async tidy(): Promise<void> {
    await this.#spool.adopt(false);
    // Folders are listed before jobs, because a job exists before its folder does.
    const owners = await this.#spool.owners();
    const existing = await this.#jobs.ids();
    for (const owner of owners) if (!existing.has(owner.id)) await this.#spool.removeJob(owner);
    const active = new Set(this.#jobs.active.map(({ id }) => id));
    for (const known of [this.#failures, this.#turns, this.#full])
      for (const id of known.keys()) if (!active.has(id)) known.delete(id);
    await this.#reportDrops();
  }

  /** Says in each job that drops events that it does, also if its uploads succeed. */
  async #reportDrops(): Promise<void> {
    const dropped = this.#spool.dropped.take();
    for (const job of this.#jobs.active) {
      const isFull = !this.#spool.hasRoom(job);
      if (!isFull && !dropped.has(job.id)) this.#full.delete(job.id);
      // The message of a failed upload says it too.
      else if (!this.#full.has(job.id) && !this.#failures.has(job.id)) {
        this.#full.add(job.id);
        await this.#jobs.noteDrops(job, isFull ? fullMessage : droppedMessage);
      }
    }
  }
}

/** Compresses a segment into a file beside it. */
async function pack(
  segment: ReadySegment,
  packed: string,
  endMs: number,
  { output }: ActiveJob,
): Promise<LogFile> {
  const hash = createHash("sha256");
  let sizeBytes = 0;
  const measure = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      hash.update(chunk);
      sizeBytes += chunk.length;
      done(null, chunk);
    },
  });
  await pipeline(
    Readable.from(batch(segment.path, output)),
    createGzip(),
    measure,
    createWriteStream(packed, { mode: 0o600 }),
  );
  return {
    name: `${secondOf(segment.startMs)}_${secondOf(endMs)}_${segment.random}.log.gz`,
    day: dayOf(segment.startMs),
    type: "gzip",
    sizeBytes,
    sha256: hash.digest("hex"),
    open: () => createReadStream(packed),
  };
}

async function* batch(
  path: string,
  { batchPrefix, batchSuffix }: ActiveJob["output"],
): AsyncGenerator<Uint8Array | string> {
  if (batchPrefix !== "") yield Buffer.from(batchPrefix);
  yield* createReadStream(path) as AsyncIterable<Buffer>;
  if (batchSuffix !== "") yield Buffer.from(batchSuffix);
}

/** YYYYMMDDThhmmssZ. */
const secondOf = (ms: number): string =>
  `${new Date(ms).toISOString().slice(0, 19).replaceAll(/[:-]/g, "")}Z`;
