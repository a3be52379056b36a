import type { ActiveJob } from "../job.ts";
import { recordFormatter, valuesOf } from "../record-format.ts";
import type { DataSet } from "../data-sets/data-set.ts";
import type { SegmentWriter } from "../spool/segment-writer.ts";
import type { LogSpool } from "../spool/spool.ts";

/** A job that receives events. */
export interface Receiver<Event> {
  job: ActiveJob;
  writer: SegmentWriter;
  /** Undefined if the job does not want the event. */
  recordOf: (event: Event) => string | undefined;
}

const defaultBytesMax = 100_000_000;

export interface CollectorOptions<Event> {
  dataSet: DataSet<Event>;
  spool: LogSpool;
  intervalMs: number;
}

/** Writes the events of a data set to the spools of the jobs that want them. */
export class Collector<Event> {
  readonly #options: CollectorOptions<Event>;
  #byId = new Map<number, Receiver<Event>>();
  #byOwner: ReadonlyMap<string, readonly Receiver<Event>[]> = new Map();
  readonly #closing = new Set<Promise<void>>();

  constructor(options: CollectorOptions<Event>) {
    this.#options = options;
  }

  /** Replaces the jobs. Returns whether there are any. */
  use(jobs: readonly ActiveJob[]): boolean {
    const before = this.#byId;
    this.#byId = new Map();
    for (const job of jobs) {
      const known = before.get(job.id);
      const isSame = known?.job.modifiedOn === job.modifiedOn;
      this.#byId.set(job.id, isSame ? known : this.#receiver(job));
    }
    for (const [id, receiver] of before) if (this.#byId.get(id) !== receiver) this.#end(receiver);
    this.#byOwner = Map.groupBy(this.#byId.values(), ({ job }) => job.zoneId ?? job.accountId);
    return this.#byId.size > 0;
  }

  /** Writes an event of a zone or an account to the spools of its jobs. */
  take(ownerId: string, event: Event): void {
    for (const { recordOf, writer } of this.#byOwner.get(ownerId) ?? []) {
      const record = recordOf(event);
      if (record !== undefined) writer.add(record);
    }
  }

  get isEmpty(): boolean {
    return this.#byId.size === 0;
  }

  get receivers(): Iterable<Receiver<Event>> {
    return this.#byId.values();
  }

  /** Whether a job wants the events of this owner. */
  wants(ownerId: string): boolean {
    return this.#byOwner.has(ownerId);
  }

  /** Makes the events so far ready for upload. */
  async seal(): Promise<void> {
    await Promise.all([...this.#byId.values()].map(async ({ writer }) => writer.seal()));
  }

  /** Makes all events ready for upload, and takes no more. */
  async close(): Promise<void> {
    this.use([]);
    await Promise.all(this.#closing);
  }

  #end({ writer }: Receiver<Event>): void {
    const closing = writer.close().finally(() => this.#closing.delete(closing));
    this.#closing.add(closing);
  }

  #receiver(job: ActiveJob): Receiver<Event> {
    const { dataSet, spool, intervalMs } = this.#options;
    const { output, matches } = job;
    const writers = dataSet.writers(output.timestampFormat);
    const format = recordFormatter(output, writers);
    const { sampleRate } = output;
    const writer = spool.writer(job, job.dataSet, {
      bytesMax: Math.min(job.uploadBytesMax || defaultBytesMax, spool.segmentBytesMax),
      recordsMax: job.uploadRecordsMax || Infinity,
      intervalMs:
        job.uploadIntervalSeconds > 0
          ? job.uploadIntervalSeconds * 1000
          : job.frequency === "low"
            ? lowFrequencyMs
            : intervalMs,
      delimiter: output.recordDelimiter,
    });
    return {
      job,
      writer,
      recordOf(event) {
        if (sampleRate < 1 && Math.random() >= sampleRate) return undefined;
        return matches?.(valuesOf(writers, event)) === false ? undefined : format(event);
      },
    };
  }
}

const lowFrequencyMs = 300_000;
