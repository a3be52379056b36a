import { Worker } from "node:worker_threads";
import { LRUCache } from "lru-cache";
import { Turns } from "../../platform/util/turns.ts";
import { unawaited } from "../../platform/util/uncaught.ts";
import { positionsIn, shownStack, type SourcePosition } from "./frames.ts";
import type { SourceMapRequest, SourceMapAnswer, ModuleMap } from "./messages.ts";
import { moduleUrl } from "../../platform/util/module-url.ts";
import { entriesMax } from "../../platform/util/loading-cache.ts";

/** Time limit for the positions of a stack; after that the maps of its code are not used for a while. */
const defaultFindMs = 2000;
const badMs = 10 * 60_000;
/** Maximum number of waiting stacks; further ones are shown unmapped. */
const waitingMax = 50;
/** Source maps in the thread, by uploaded size. */
const mapBytesMax = 64 * 1024 * 1024;
const idleMs = 30_000;
const heapMegabytesMax = 320;
const positionsKept = 10_000;
const noSource = "none";

/**
 * Maps stacks to the source by the source maps of an upload, in a thread that runs while there are stacks to
 * map. Never rejects: a stack stays unmapped if its map is invalid, too large or too slow.
 */
export class SourceMaps {
  readonly #load: (codeId: string) => Promise<readonly ModuleMap[]>;
  readonly #findMs: number;
  readonly #turns = new Turns();
  readonly #positions = new LRUCache<string, SourcePosition | typeof noSource>(entriesMax(positionsKept));
  readonly #bad = new LRUCache<string, true>({ ...entriesMax(1000), ttl: badMs });
  #thread: Thread | undefined;
  #idle: NodeJS.Timeout | undefined;
  #waiting = 0;
  #isClosed = false;

  /** `load` reads the source maps of some code. */
  constructor(load: (codeId: string) => Promise<readonly ModuleMap[]>, findMs = defaultFindMs) {
    this.#load = load;
    this.#findMs = findMs;
  }

  /** Maps stacks and removes the platform's frames. `codeId` is undefined for code without source maps. */
  async shown(codeId: string | undefined, stacks: readonly string[]): Promise<string[]> {
    if (codeId !== undefined) await this.#find(codeId, stacks.flatMap(positionsIn));
    return stacks.map((stack) =>
      shownStack(stack, (position) => {
        const found = codeId === undefined ? noSource : this.#positions.get(keyOf(codeId, position));
        return found === noSource ? undefined : found;
      }),
    );
  }

  /** Whether the thread runs. */
  get isBusy(): boolean {
    return this.#thread !== undefined;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#end();
  }

  async #find(codeId: string, positions: readonly SourcePosition[]): Promise<void> {
    const unknown = [...new Map(positions.map((position) => [keyOf(codeId, position), position])).values()]
      .filter((position) => !this.#positions.has(keyOf(codeId, position)))
      .slice(0, positionsKept / 2);
    if (unknown.length === 0 || this.#bad.has(codeId) || this.#waiting >= waitingMax || this.#isClosed)
      return;
    this.#waiting++;
    try {
      await this.#turns.take(async () => this.#ask(codeId, unknown));
    } catch {
      this.#bad.set(codeId, true);
      await this.#end();
    } finally {
      this.#waiting--;
    }
  }

  async #ask(codeId: string, positions: readonly SourcePosition[]): Promise<void> {
    if (this.#isClosed || this.#bad.has(codeId)) return;
    clearTimeout(this.#idle);
    const thread = (this.#thread ??= new Thread());
    if (!thread.has(codeId)) thread.keep(codeId, await this.#load(codeId));
    const found = await thread.find(codeId, positions, this.#findMs);
    for (const [i, position] of positions.entries())
      this.#positions.set(keyOf(codeId, position), found[i] ?? noSource);
    this.#idle = setTimeout(() => unawaited(this.#end()), idleMs).unref();
  }

  async #end(): Promise<void> {
    clearTimeout(this.#idle);
    const thread = this.#thread;
    this.#thread = undefined;
    await thread?.end();
  }
}

const keyOf = (codeId: string, { file, line, column }: SourcePosition): string =>
  `${codeId} ${line}:${column} ${file}`;

class Thread {
  readonly #worker = new Worker(moduleUrl("workers/stack-traces/thread"), {
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: heapMegabytesMax },
  });
  readonly #kept = new LRUCache<string, number>({
    maxSize: mapBytesMax,
    sizeCalculation: (bytes) => bytes,
    dispose: (_bytes, codeId) => this.#post({ type: "drop", codeId }),
  });
  #lastId = 0;
  #fault: Error | undefined;

  constructor() {
    this.#worker.unref();
    this.#worker.on("error", (error: Error) => (this.#fault = error));
  }

  has(codeId: string): boolean {
    return this.#kept.has(codeId);
  }

  keep(codeId: string, maps: readonly ModuleMap[]): void {
    this.#post({ type: "keep", codeId, maps });
    this.#kept.set(
      codeId,
      maps.reduce((sum, { content }) => sum + content.length, 1),
    );
  }

  async find(
    codeId: string,
    positions: readonly SourcePosition[],
    findMs: number,
  ): Promise<SourceMapAnswer["positions"]> {
    const worker = this.#worker;
    const id = ++this.#lastId;
    const { promise, resolve, reject } = Promise.withResolvers<SourceMapAnswer["positions"]>();
    const take = (found: SourceMapAnswer): void => {
      if (found.id === id) resolve(found.positions);
    };
    const ended = (): void => reject(this.#fault ?? new Error("the thread that reads source maps ended"));
    const timer = setTimeout(() => reject(new Error("a source map took too long")), findMs);
    worker.on("message", take).on("error", reject).on("exit", ended);
    if (this.#fault !== undefined) reject(this.#fault);
    this.#post({ type: "find", id, codeId, positions });
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
      worker.off("message", take).off("error", reject).off("exit", ended);
    }
  }

  async end(): Promise<void> {
    await this.#worker.terminate();
  }

  #post(ask: SourceMapRequest): void {
    this.#worker.postMessage(ask, []);
  }
}
