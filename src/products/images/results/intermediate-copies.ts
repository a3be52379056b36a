import type { Logger } from "pino";
import type { Blobs } from "../../../platform/storage/blobs.ts";
import type { Held } from "../directory.ts";
import { decodeCpuMs, estimate } from "../engine/cost.ts";
import type { ImageEngine } from "../engine/engine.ts";
import { layout, turned, type Size } from "../recipe/geometry.ts";
import type { ImageContent, Probe } from "../image.ts";
import { resultFolder, resultKey, uprightSize, type Output, type Recipe } from "../recipe/recipe.ts";
import type { Results } from "./results.ts";
import { SingleFlight } from "./single-flight.ts";
import { sourceFile } from "./source-file.ts";
import { unawaited } from "../../../platform/util/uncaught.ts";

/** Smaller savings of CPU time are not worth a file. */
const savedCpuMsMin = 20;
/** In results at least this many times smaller, the compression of an intermediate copy is invisible. */
const reductionMin = 2;
/** Results of a higher quality are made from the original. */
const quality = 92;
const servedQualityMax = 90;
/** After this many small results, more are likely to follow. */
const resultsBefore = 2;

const output: Output = {
  format: "jpeg",
  quality,
  isBaseline: true,
  isUnoptimized: true,
  metadata: "none",
  isAnimated: false,
};

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
  /** Longest side in pixels; 0 disables copies. */
  readonly #sidePixels: number;
  readonly #engine: ImageEngine;
  readonly #results: Results;
  readonly #blobs: Blobs;
  readonly #logger: Logger;
  readonly #made = new WeakMap<Held, number>();
  readonly #flights = new SingleFlight<string | undefined>();

  constructor(options: {
    sidePixels: number;
    engine: ImageEngine;
    results: Results;
    blobs: Blobs;
    logger: Logger;
  }) {
    this.#sidePixels = options.sidePixels;
    this.#engine = options.engine;
    this.#results = options.results;
    this.#blobs = options.blobs;
    this.#logger = options.logger;
  }

  /** Whether a result from an intermediate copy looks the same. */
  serves(content: ImageContent, { transform, output: wanted }: Recipe): boolean {
    const isSmallLoss =
      wanted.format === "jpeg" || wanted.format === "webp" || wanted.format === "avif"
        ? (wanted.quality ?? 0) <= servedQualityMax
        : false;
    if (!isSmallLoss || wanted.isAnimated || wanted.metadata === "keep" || transform.trim !== undefined)
      return false;
    if (!this.#isWorth(content)) return false;
    const { rotate = 0 } = transform;
    const whole = turned(uprightSize(content), rotate);
    const { scaled } = layout(whole, transform as Partial<Size>, transform.fit ?? "scale-down");
    const size = turned(this.#size(content), rotate);
    return scaled.width * reductionMin <= size.width && scaled.height * reductionMin <= size.height;
  }

  /** Replaces the hash of the image's bytes in the names of results made from its copy. */
  key(content: ImageContent): string {
    return resultKey(content.sha256, this.#recipe());
  }

  /** Checks whether an image has a copy already. */
  async look(held: Held): Promise<void> {
    const { content } = held.image!;
    held.hasIntermediateCopy =
      content !== null &&
      this.#isWorth(content) &&
      (await this.#results.file(this.#name(content))) !== undefined;
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
    const kept = await this.#results.file(this.#name(content));
    const path = kept ?? (await this.#make(held, signal));
    if (path !== undefined) return { path, probe: this.#probe(content) };
    held.hasIntermediateCopy = false;
    return undefined;
  }

  async #make(held: Held, signal: AbortSignal | undefined): Promise<string | undefined> {
    const content = held.image!.content!;
    const name = this.#name(content);
    const work = async (shared: AbortSignal): Promise<string | undefined> => {
      const recipe = this.#recipe();
      const steps = [{ kind: "transform" as const, transform: recipe.transform }];
      const file = await sourceFile(this.#blobs, content.blobKey);
      const picture = { path: file.path, probe: content, steps, focus: null };
      const cost = estimate(content, recipe, this.#size(content));
      const target = this.#results.path(name);
      const { bytes, sizeBytes } = await this.#engine
        .run({ picture, output, target }, cost, shared)
        .finally(file.release);
      if (bytes !== undefined) return undefined; // the disk is full
      this.#results.adopt(name, sizeBytes, () => held.isCurrent);
      return this.#results.file(name);
    };
    return this.#flights.run(name, work, signal);
  }

  #isWorth(content: ImageContent): boolean {
    const isPlain =
      content.frames === 1 && !content.hasAlpha && !content.hasPalette && content.format !== "svg";
    return (
      this.#sidePixels > 0 &&
      isPlain &&
      decodeCpuMs(content) - decodeCpuMs(this.#probe(content)) >= savedCpuMsMin
    );
  }

  #recipe(): Recipe {
    return { transform: { width: this.#sidePixels, height: this.#sidePixels }, output };
  }

  #name(content: ImageContent): string {
    return `${resultFolder(content.blobKey)}/${this.key(content)}`;
  }

  #size(content: ImageContent): Size {
    return layout(uprightSize(content), this.#recipe().transform as Partial<Size>, "scale-down").scaled;
  }

  #probe(content: ImageContent): IntermediateCopy["probe"] {
    const { sizeBytes, hasAlpha, hasPalette, frames } = content;
    const probe = { format: "jpeg" as const, ...this.#size(content), orientation: 1, isProgressive: false };
    return { ...probe, frames, hasAlpha, hasPalette, sizeBytes };
  }
}
