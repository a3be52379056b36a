import { readFile, stat } from "node:fs/promises";
import type { ProcessCalls } from "../../../platform/process-calls/calls.ts";
import { AnsweredElsewhere, type DeliveredResults } from "./delivery.ts";
import type { Held } from "../directory.ts";
import type { CopyPlan } from "../results/copy-plan.ts";
import { memoryObjectBytesMax, ResultMemory } from "../results/result-memory.ts";
import type { Results, Stored } from "../results/results.ts";

const callName = "result of an image";

interface Found {
  path: string;
  sizeBytes: number;
}

/** In main: answers edge processes where a result is. */
export const serveResults = (calls: ProcessCalls, results: Results): void =>
  calls.serve<{ name: string }>(callName, async ({ name }, { response }) => {
    const path = await results.file(name);
    const found: Found | null = path === undefined ? null : { path, sizeBytes: (await stat(path)).size };
    response.end(JSON.stringify(found));
  });

/**
 * In edge processes: results that main has made, the small ones in memory. Their names have the key of the image's bytes,
 * so the result of a deleted or replaced image is never asked for again.
 */
export class ResultsOfMain implements DeliveredResults {
  readonly plan: CopyPlan;
  readonly #calls: ProcessCalls;
  readonly #memory: ResultMemory;

  constructor(calls: ProcessCalls, memoryBytesMax: number, plan: CopyPlan) {
    this.#calls = calls;
    this.plan = plan;
    this.#memory = new ResultMemory(memoryBytesMax);
  }

  inMemory(name: string): Buffer | undefined {
    return this.#memory.get(name);
  }

  async kept(name: string): Promise<Stored | undefined> {
    const known = this.#memory.get(name);
    if (known !== undefined) return { bytes: known };
    const found = await this.#find(name);
    if (found === undefined || found.sizeBytes > memoryObjectBytesMax) return found;
    const bytes = await readFile(found.path).catch(() => undefined); // main has just removed it
    if (bytes === undefined) return undefined;
    this.#memory.set(name, bytes);
    return { bytes };
  }

  /** Main makes it, and answers. A stored image may have an intermediate copy by now, of which results have other names. */
  async make(source: Held | { sha256: string }): Promise<never> {
    if ("image" in source) await this.look(source);
    throw new AnsweredElsewhere();
  }

  /** Checks whether an image has an intermediate copy. */
  async look(held: Held): Promise<void> {
    const { content } = held.image!;
    held.hasIntermediateCopy =
      content !== null &&
      this.plan.isWorth(content) &&
      (await this.#find(this.plan.name(content))) !== undefined;
  }

  /** Drops the results of an image from memory. */
  forget(folder: string): void {
    this.#memory.forget(folder);
  }

  /** Without an answer of main, the whole request waits for another main process. */
  async #find(name: string): Promise<Found | undefined> {
    const found = await this.#calls.ask<Found | null>(callName, { name }).catch(() => null);
    return found ?? undefined;
  }
}
