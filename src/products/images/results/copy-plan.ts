import { decodeCpuMs } from "../engine/cost.ts";
import type { ImageContent, Probe } from "../image.ts";
import { layout, turned, type Size } from "../recipe/geometry.ts";
import { resultFolder, resultKey, uprightSize, type Output, type Recipe } from "../recipe/recipe.ts";

/** Smaller savings of CPU time are not worth a file. */
const savedCpuMsMin = 20;
/** In results at least this many times smaller, the compression of an intermediate copy is invisible. */
const reductionMin = 2;
/** Results of a higher quality are made from the original. */
const quality = 92;
const servedQualityMax = 90;
const output: Output = {
  format: "jpeg",
  quality,
  isBaseline: true,
  isUnoptimized: true,
  metadata: "none",
  isAnimated: false,
};

/** Chooses the images that get an intermediate copy, and the results that are made from it. */
export class CopyPlan {
  /** Longest side in pixels; 0 disables copies. */
  readonly #sidePixels: number;

  constructor(sidePixels: number) {
    this.#sidePixels = sidePixels;
  }

  /** Whether a result from an intermediate copy looks the same. */
  serves(content: ImageContent, { transform, output: wanted }: Recipe): boolean {
    const isSmallLoss =
      wanted.format === "jpeg" || wanted.format === "webp" || wanted.format === "avif"
        ? (wanted.quality ?? 0) <= servedQualityMax
        : false;
    if (!isSmallLoss || wanted.isAnimated || wanted.metadata === "keep" || transform.trim !== undefined)
      return false;
    if (!this.isWorth(content)) return false;
    const { rotate = 0 } = transform;
    const whole = turned(uprightSize(content), rotate);
    const { scaled } = layout(whole, transform as Partial<Size>, transform.fit ?? "scale-down");
    const size = turned(this.size(content), rotate);
    return scaled.width * reductionMin <= size.width && scaled.height * reductionMin <= size.height;
  }

  /** Replaces the hash of the image's bytes in the names of results made from its copy. */
  key(content: ImageContent): string {
    return resultKey(content.sha256, this.recipe());
  }

  /** Whether decoding the image is so expensive that a copy pays. */
  isWorth(content: ImageContent): boolean {
    const isPlain =
      content.frames === 1 && !content.hasAlpha && !content.hasPalette && content.format !== "svg";
    return (
      this.#sidePixels > 0 &&
      isPlain &&
      decodeCpuMs(content) - decodeCpuMs(this.probe(content)) >= savedCpuMsMin
    );
  }

  recipe(): Recipe {
    return { transform: { width: this.#sidePixels, height: this.#sidePixels }, output };
  }

  /** The name of the copy among the results. */
  name(content: ImageContent): string {
    return `${resultFolder(content.blobKey)}/${this.key(content)}`;
  }

  size(content: ImageContent): Size {
    return layout(uprightSize(content), this.recipe().transform as Partial<Size>, "scale-down").scaled;
  }

  probe(content: ImageContent): Probe & { sizeBytes: number } {
    const { sizeBytes, hasAlpha, hasPalette, frames } = content;
    const probe = { format: "jpeg" as const, ...this.size(content), orientation: 1, isProgressive: false };
    return { ...probe, frames, hasAlpha, hasPalette, sizeBytes };
  }
}
