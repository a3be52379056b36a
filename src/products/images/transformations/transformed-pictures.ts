import { estimate } from "../engine/cost.ts";
import type { ImageEngine } from "../engine/engine.ts";
import type { TimedResult } from "../engine/job.ts";
import type { PlannedResult } from "../recipe/recipe.ts";
import type { MadeResult, MadeResults } from "../results/made-results.ts";
import type { Results, Stored } from "../results/results.ts";
import type { Original } from "./originals.ts";
import type { TransformedResults } from "./transformations.ts";

/** Transforms pictures of origins, and stores the results unless the origin forbids it. */
export class TransformedPictures implements TransformedResults {
  readonly #engine: ImageEngine;
  readonly #results: Results;
  readonly #made: MadeResults;

  constructor(engine: ImageEngine, results: Results, made: MadeResults) {
    this.#engine = engine;
    this.#results = results;
    this.#made = made;
  }

  kept(name: string): Promise<Stored | undefined> {
    return this.#results.get(name);
  }

  async make(
    original: Original,
    name: string,
    planned: PlannedResult,
    signal: AbortSignal,
  ): Promise<MadeResult> {
    const { transform, output } = planned.recipe;
    const { accountId } = original;
    const cost = estimate(original.probe, planned.recipe, planned.size);
    const picture = {
      path: original.path,
      probe: original.probe,
      steps: [{ kind: "transform" as const, transform }],
      focus: original.focus,
    };
    if (!original.isStorable) {
      const { bytes, times } = await this.#engine.run(
        { picture, output, target: undefined },
        { accountId, cost },
        signal,
      );
      return { stored: { bytes: Buffer.from(bytes!) }, times };
    }
    const run = async (target: string, shared: AbortSignal): Promise<TimedResult> => {
      const result = await this.#engine.run({ picture, output, target }, { accountId, cost }, shared);
      original.focus ??= result.focus;
      return result;
    };
    return this.#made.make(name, { isWanted: () => original.isCurrent }, run, signal);
  }
}
