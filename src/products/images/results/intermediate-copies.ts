import type { Logger } from "pino";
import type { Blobs } from "../../../platform/storage/blobs.ts";
import type { Held } from "../directory.ts";
import { estimate } from "../engine/cost.ts";
import type { ImageEngine } from "../engine/engine.ts";
import type { Probe } from "../image.ts";
import type { CopyPlan } from "./copy-plan.ts";
import type { Results } from "./results.ts";
import { SingleFlight } from "./single-flight.ts";
import { sourceFile } from "./source-file.ts";
import { unawaited } from "../../../platform/util/uncaught.ts";

/** After this many small results, more are likely to follow. */
const resultsBefore = 2;

/** The file that the engine reads instead of the image. */
export interface IntermediateCopy {
  path: string;
  probe: Probe & { sizeBytes: number };
}

/**
 * Decoding a large image takes most of the time of a small result. When decoding is expensive and a second
 * result is requested, an intermediate copy is stored among the results, from which all further small results
 * are made: docs/decisions/0008.
 */
export class IntermediateCopies {
  readonly plan: CopyPlan;
  readonly #engine: ImageEngine;
  readonly #results: Results;
  readonly #blobs: Blobs;
  readonly #logger: Logger;
  readonly #made = new WeakMap<Held, number>();
  readonly #flights = new SingleFlight<string | undefined>();

  constructor(options: {
    plan: CopyPlan;
    engine: ImageEngine;
    results: Results;
    blobs: Blobs;
    logger: Logger;
  }) {
    this.plan = options.plan;
    this.#engine = options.engine;
    this.#results = options.results;
    this.#blobs = options.blobs;
    this.#logger = options.logger;
  }

  /** Checks whether an image has a copy already. */
  async look(held: Held): Promise<void> {
    const { content } = held.image!;
    held.hasIntermediateCopy =
      content !== null &&
      this.plan.isWorth(content) &&
      (await this.#results.file(this.plan.name(content))) !== undefined;
  }

  /** Called for each result that was made from an image although a copy would do. */
  note(held: Held): void {
    const made = (this.#made.get(held) ?? 0) + 1;
    this.#made.set(held, made);
    if (made !== resultsBefore) return;
    unawaited(this.#makeBeside(held));
  }

  async #makeBeside(held: Held): Promise<void> {
    try {
      held.hasIntermediateCopy = (await this.#make(held, undefined)) !== undefined;
    } catch (error) {
      this.#made.delete(held); // the engine is busy; a later request tries again
      this.#logger.debug({ err: error, image: held.image?.id }, "no smaller copy of an image was made");
    }
  }

  /**
   * Returns the intermediate copy of an image, and recreates an evicted one. Undefined when it cannot be
   * stored.
   */
  async get(held: Held, signal: AbortSignal): Promise<IntermediateCopy | undefined> {
    const content = held.image!.content!;
    const kept = await this.#results.file(this.plan.name(content));
    const path = kept ?? (await this.#make(held, signal));
    if (path !== undefined) return { path, probe: this.plan.probe(content) };
    held.hasIntermediateCopy = false;
    return undefined;
  }

  async #make(held: Held, signal: AbortSignal | undefined): Promise<string | undefined> {
    const { accountId } = held.image!;
    const content = held.image!.content!;
    const name = this.plan.name(content);
    const work = async (shared: AbortSignal): Promise<string | undefined> => {
      const recipe = this.plan.recipe();
      const steps = [{ kind: "transform" as const, transform: recipe.transform }];
      const file = await sourceFile(this.#blobs, content.blobKey);
      const { output } = recipe;
      const picture = { path: file.path, probe: content, steps, focus: null };
      const cost = estimate(content, recipe, this.plan.size(content));
      const target = this.#results.path(name);
      const { bytes, sizeBytes } = await this.#engine
        .run({ picture, output, target }, { accountId, cost }, shared)
        .finally(file.release);
      if (bytes !== undefined) return undefined; // the disk is full
      this.#results.adopt(name, sizeBytes, () => held.isCurrent);
      return this.#results.file(name);
    };
    return this.#flights.run(name, work, signal);
  }
}
