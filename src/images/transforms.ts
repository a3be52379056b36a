import { LRUCache } from "lru-cache";
import type { Logger } from "pino";
import { ApiError } from "../api/errors.ts";
import type { FileBlobs } from "../storage/blobs.ts";
import type { Held } from "./directory.ts";
import { estimate } from "./engine/cost.ts";
import { imageErrors } from "./errors.ts";
import type { Engine } from "./engine/engine.ts";
import type { Content, Focus, Image } from "./image.ts";
import type { Mezzanines } from "./mezzanines.ts";
import type { Planned } from "./recipe.ts";
import type { Results, Stored } from "./results.ts";
import { SingleFlight } from "./single-flight.ts";

/** How long a picture that cannot be decoded, or takes too long, is not tried again. */
const failureMs = 30_000;

export interface Wanted {
  name: string;
  planned: Planned;
  isFromMezzanine: boolean;
}

/** Results of stored images: kept ones, and those that have to be made first, each once. */
export class Transforms {
  readonly #engine: Engine;
  readonly #results: Results;
  readonly #mezzanines: Mezzanines;
  readonly #blobs: FileBlobs;
  readonly #logger: Logger;
  readonly #saveFocus: (image: Image, focus: Focus) => Promise<void>;
  /** Undefined: the result is kept. */
  readonly #flights = new SingleFlight<Stored | undefined>();
  readonly #failures = new LRUCache<string, ApiError>({ max: 10_000, ttl: failureMs });

  constructor(options: {
    engine: Engine;
    results: Results;
    mezzanines: Mezzanines;
    blobs: FileBlobs;
    logger: Logger;
    saveFocus: (image: Image, focus: Focus) => Promise<void>;
  }) {
    this.#engine = options.engine;
    this.#results = options.results;
    this.#mezzanines = options.mezzanines;
    this.#blobs = options.blobs;
    this.#logger = options.logger;
    this.#saveFocus = options.saveFocus;
  }

  /** The result if it is in memory. */
  quick(name: string): Buffer | undefined {
    return this.#results.quick(name);
  }

  kept(name: string): Promise<Stored | undefined> {
    return this.#results.get(name);
  }

  /** Makes a result, or joins those who wait for it already. */
  async make(held: Held, wanted: Wanted, signal: AbortSignal): Promise<Stored> {
    const { name } = wanted;
    const failure = this.#failures.get(name);
    if (failure !== undefined) throw failure;
    try {
      const unkept = await this.#flights.run(name, (shared) => this.#make(held, wanted, shared), signal);
      const stored = unkept ?? (await this.#results.get(name));
      if (stored !== undefined) return stored;
    } catch (error) {
      if (error instanceof ApiError && (error.status === 422 || error.status === 504))
        this.#failures.set(name, error);
      throw error;
    }
    throw imageErrors.notFound(); // deleted in this very moment
  }

  async #make(
    held: Held,
    { name, planned, isFromMezzanine }: Wanted,
    signal: AbortSignal,
  ): Promise<Stored | undefined> {
    const image = held.image!;
    const content: Content = image.content!;
    const { transform, output } = planned.recipe;
    const mezzanine = isFromMezzanine ? await this.#mezzanines.get(held, signal) : undefined;
    const picture = {
      path: this.#blobs.path(content.blobKey),
      mezzanine: mezzanine?.path,
      probe: content,
      steps: [{ kind: "transform" as const, transform }],
      focus: image.focus,
    };
    const cost = estimate(mezzanine?.probe ?? content, planned.recipe, planned.size);
    const target = this.#results.path(name);
    const result = await this.#engine.run({ picture, output, target }, cost, signal);
    if (result.focus !== null && image.focus === null) {
      image.focus = result.focus;
      this.#saveFocus(image, result.focus).catch((error: unknown) => {
        this.#logger.warn({ err: error, image: image.id }, "the focus of an image could not be saved");
      });
    }
    if (!isFromMezzanine && this.#mezzanines.serves(content, planned.recipe)) this.#mezzanines.note(held);
    const isWanted = (): boolean => held.isCurrent;
    if (result.bytes !== undefined) {
      this.#logger.warn({ path: target }, "a finished picture could not be kept on disk");
      return this.#results.hold(name, Buffer.from(result.bytes), isWanted);
    }
    this.#results.adopt(name, result.sizeBytes, isWanted);
    return undefined;
  }
}
