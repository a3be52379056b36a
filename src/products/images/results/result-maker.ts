import type { Logger } from "pino";
import type { Blobs } from "../../../platform/storage/blobs.ts";
import type { Held, ImageDirectory } from "../directory.ts";
import { estimate } from "../engine/cost.ts";
import { SourceGone, type ImageEngine } from "../engine/engine.ts";
import type { TimedResult } from "../engine/job.ts";
import type { ImageContent, Focus, Image } from "../image.ts";
import type { MadeResult, MadeResults } from "./made-results.ts";
import type { IntermediateCopies } from "./intermediate-copies.ts";
import type { PlannedResult } from "../recipe/recipe.ts";
import type { Results, Stored } from "./results.ts";
import { sourceFile } from "./source-file.ts";
import { unawaited } from "../../../platform/util/uncaught.ts";

export interface WantedResult {
  name: string;
  planned: PlannedResult;
  isFromIntermediateCopy: boolean;
}

/** How often the record of an image that changes again and again is read before its result is given up. */
const readsMax = 5;

/** Results of stored images: cached, or made on request. */
export class ResultMaker {
  readonly #directory: Pick<ImageDirectory, "image">;
  readonly #engine: ImageEngine;
  readonly #results: Results;
  readonly #made: MadeResults;
  readonly #intermediateCopies: IntermediateCopies;
  readonly #blobs: Blobs;
  readonly #logger: Logger;
  readonly #saveFocus: (image: Image, focus: Focus) => Promise<void>;

  constructor(options: {
    directory: Pick<ImageDirectory, "image">;
    engine: ImageEngine;
    results: Results;
    made: MadeResults;
    intermediateCopies: IntermediateCopies;
    blobs: Blobs;
    logger: Logger;
    saveFocus: (image: Image, focus: Focus) => Promise<void>;
  }) {
    this.#directory = options.directory;
    this.#engine = options.engine;
    this.#results = options.results;
    this.#made = options.made;
    this.#intermediateCopies = options.intermediateCopies;
    this.#blobs = options.blobs;
    this.#logger = options.logger;
    this.#saveFocus = options.saveFocus;
  }

  /** The result, if it is in memory. */
  inMemory(name: string): Buffer | undefined {
    return this.#results.inMemory(name);
  }

  kept(name: string): Promise<Stored | undefined> {
    return this.#results.get(name);
  }

  /** Makes a result, or joins a running job for it. */
  make(held: Held, wanted: WantedResult, signal: AbortSignal): Promise<MadeResult> {
    const run = (target: string, shared: AbortSignal): Promise<TimedResult> =>
      this.#run(held, wanted, target, shared).catch((error: unknown) => {
        // The intermediate copy may have been evicted: it is recreated.
        if (!(error instanceof SourceGone && wanted.isFromIntermediateCopy && held.isCurrent)) throw error;
        return this.#run(held, wanted, target, shared);
      });
    let latest = held;
    const source = {
      isWanted: () => latest.isCurrent,
      // An image whose record has changed still has its bytes, of which the result is made.
      refresh: async () => {
        for (let read = 0; read < readsMax && !latest.isCurrent; read++) {
          const { accountId, id, content } = held.image!;
          const next = await this.#directory.image(accountId, id);
          if (next.image?.content?.blobKey !== content!.blobKey) return;
          latest = next;
        }
      },
    };
    return this.#made.make(wanted.name, source, run, signal);
  }

  async #run(
    held: Held,
    { planned, isFromIntermediateCopy }: WantedResult,
    target: string,
    signal: AbortSignal,
  ): Promise<TimedResult> {
    const image = held.image!;
    const content: ImageContent = image.content!;
    const { transform, output } = planned.recipe;
    const intermediateCopy = isFromIntermediateCopy
      ? await this.#intermediateCopies.get(held, signal)
      : undefined;
    const file = await sourceFile(this.#blobs, content.blobKey);
    const picture = {
      path: file.path,
      intermediateCopy: intermediateCopy?.path,
      probe: content,
      steps: [{ kind: "transform" as const, transform }],
      focus: image.focus,
    };
    const cost = estimate(intermediateCopy?.probe ?? content, planned.recipe, planned.size);
    const { accountId } = image;
    const result = await this.#engine
      .run({ picture, output, target }, { accountId, cost }, signal)
      .finally(file.release);
    if (result.focus !== null && image.focus === null) {
      image.focus = result.focus;
      unawaited(
        this.#saveFocus(image, result.focus).catch((error: unknown) => {
          this.#logger.warn({ err: error, image: image.id }, "the focus of an image could not be saved");
        }),
      );
    }
    if (!isFromIntermediateCopy && this.#intermediateCopies.plan.serves(content, planned.recipe))
      this.#intermediateCopies.note(held);
    return result;
  }
}
