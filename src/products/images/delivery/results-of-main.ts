import { readFile, stat } from "node:fs/promises";
import { LRUCache } from "lru-cache";
import type { ProcessCalls } from "../../../platform/process-calls/calls.ts";
import { AnsweredElsewhere, type DeliveredResults } from "./delivery.ts";
import type { Held } from "../directory.ts";
import type { CopyPlan } from "../results/copy-plan.ts";
import { memoryObjectBytesMax, type Results, type Stored } from "../results/results.ts";

const callName = "result of an image";

interface Found {
  path: string;
  sizeBytes: number;
}

/** In main: tells edge processes where a result is. */
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
  readonly #memory: LRUCache<string, Buffer>;
  /** The names in memory, by the folder of the image: a change of an account forgets all images. */
  readonly #names = new Map<string, Set<string>>();

  constructor(calls: ProcessCalls, memoryBytesMax: number, plan: CopyPlan) {
    this.#calls = calls;
    this.plan = plan;
    this.#memory = new LRUCache({
      maxSize: memoryBytesMax,
      sizeCalculation: (bytes) => bytes.length + 256,
      dispose: (_bytes, name, reason) => {
        if (reason !== "set") this.#unlist(name);
      },
    });
  }

  inMemory(name: string): Buffer | undefined {
    return this.#memory.get(name);
  }

  async kept(name: string): Promise<Stored | undefined> {
    const found = await this.#find(name);
    if (found === undefined || found.sizeBytes > memoryObjectBytesMax) return found;
    const bytes = await readFile(found.path).catch(() => undefined); // main has just removed it
    if (bytes === undefined) return undefined;
    this.#keep(name, bytes);
    return { bytes };
  }

  /** Main makes it, and answers. It may have an intermediate copy by now, of which results have other names. */
  async make(held: Held): Promise<never> {
    await this.look(held);
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
    for (const name of [...(this.#names.get(folder) ?? [])]) this.#memory.delete(name);
  }

  #keep(name: string, bytes: Buffer): void {
    this.#memory.set(name, bytes);
    if (!this.#memory.has(name)) return; // larger than the memory
    const folder = folderOf(name);
    let names = this.#names.get(folder);
    if (names === undefined) this.#names.set(folder, (names = new Set()));
    names.add(name);
  }

  #unlist(name: string): void {
    const folder = folderOf(name);
    const names = this.#names.get(folder);
    names?.delete(name);
    if (names?.size === 0) this.#names.delete(folder);
  }

  /** Without an answer of main, the whole request waits for another main process. */
  async #find(name: string): Promise<Found | undefined> {
    const found = await this.#calls.ask<Found | null>(callName, { name }).catch(() => null);
    return found ?? undefined;
  }
}

const folderOf = (name: string): string => name.slice(0, name.indexOf("/"));
