import { LRUCache } from "lru-cache";
import type { Logger } from "pino";
import { DomainError } from "../../../platform/domain-error.ts";
import type { JobTimes, TimedResult } from "../engine/job.ts";
import { SourceGone } from "../engine/engine.ts";
import { imageErrors } from "../errors.ts";
import type { Results, Stored } from "./results.ts";
import { SingleFlight } from "./single-flight.ts";
import { entriesMax } from "../../../platform/util/loading-cache.ts";

/** How long an undecodable picture is not retried. Other failures are not remembered. */
const failureMs = 30_000;

/** The picture of which a result is made. */
export interface ResultSource {
  /** Whether it is still what it was, as far as is known without a read. */
  isWanted(): boolean;
  /** Finds out whether a source that may have changed is still wanted. */
  refresh?(): Promise<void>;
}

/** A result that was made for a request, maybe together with others. */
export interface MadeResult {
  stored: Stored;
  /** Those of the job, which may have begun before this request. */
  times: JobTimes;
}

/** The end of a job: its result, unless that is in the store. */
type Finished = { unkept: Stored | undefined; times: JobTimes };

/** Makes results, once for concurrent requests, and stores them. */
export class MadeResults {
  readonly #results: Results;
  readonly #logger: Logger;
  readonly #flights = new SingleFlight<Finished>();
  readonly #failures = new LRUCache<string, DomainError>({ ...entriesMax(10_000), ttl: failureMs });

  constructor(results: Results, logger: Logger) {
    this.#results = results;
    this.#logger = logger;
  }

  /**
   * `run` writes the result to the file `target`, or returns its bytes when the write fails. The result is stored while its source is wanted. Rejects with a DomainError, `notFound` if the source was deleted in the meantime.
   */
  async make(
    name: string,
    source: ResultSource,
    run: (target: string, signal: AbortSignal) => Promise<TimedResult>,
    signal: AbortSignal,
  ): Promise<MadeResult> {
    const failure = this.#failures.get(name);
    if (failure !== undefined) throw failure;
    try {
      const work = (shared: AbortSignal): Promise<Finished> => this.#make(name, source, run, shared);
      const { unkept, times } = await this.#flights.run(name, work, signal);
      const stored = unkept ?? (await this.#results.get(name));
      if (stored !== undefined) return { stored, times };
    } catch (error) {
      if (error instanceof DomainError && error.kind === "images.undecodable")
        this.#failures.set(name, error);
      throw error instanceof SourceGone && !source.isWanted() ? imageErrors.notFound() : error;
    }
    throw imageErrors.notFound(); // the image was deleted in the meantime
  }

  async #make(
    name: string,
    source: ResultSource,
    run: (target: string, signal: AbortSignal) => Promise<TimedResult>,
    signal: AbortSignal,
  ): Promise<Finished> {
    const target = this.#results.path(name);
    const result = await run(target, signal);
    await source.refresh?.();
    const isWanted = (): boolean => source.isWanted();
    const { bytes, sizeBytes, times } = result;
    if (bytes !== undefined) {
      this.#logger.warn({ path: target }, "a result could not be stored on disk");
      return { unkept: this.#results.keepInMemory(name, Buffer.from(bytes), isWanted), times };
    }
    this.#results.adopt(name, sizeBytes, isWanted);
    return { unkept: undefined, times };
  }
}
