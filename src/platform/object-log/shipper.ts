import type { Archive } from "../storage/archive/archive.ts";
import type { ObjectFile } from "../storage/live-files/object-files.ts";
import type { Catalog, FileState } from "./catalog.ts";
import type { LogOrder } from "./log-order.ts";
import { writeSegment, type Entry } from "./segment.ts";

export interface EntryShipperOptions {
  catalog: Catalog;
  files: Archive;
  order: LogOrder;
  /** Resolves when the catalog has everything that is in the store. */
  ready: () => Promise<void>;
  /** The current states of these files. */
  statesOf: (files: readonly ObjectFile[]) => (ObjectFile & { state: FileState })[];
}

const segmentBytesMax = 16 * 1024 * 1024;

/** Writes entries to the store of the log, several in one segment, one segment at a time. */
export class Shipper {
  readonly #options: EntryShipperOptions;
  #waiting: Entry[] = [];
  #bytes = 0;
  #pushed = 0;
  /** All entries up to this number are in the store or were dropped. */
  shipped = 0;
  #current: Promise<void> | undefined;
  #next: Promise<void> | undefined;
  #generation = 0;
  #replacements = 0;

  constructor(options: EntryShipperOptions) {
    this.#options = options;
  }

  /** Whether no entry waits or is being written, and `shipped` includes those that were dropped. */
  get isIdle(): boolean {
    return this.#waiting.length === 0 && this.#current === undefined && this.shipped === this.#pushed;
  }

  get waitingBytes(): number {
    return this.#bytes;
  }

  /** Returns the number of the entry. */
  push(entry: Entry): number {
    this.#waiting.push(entry);
    this.#bytes += entry.bytes.length;
    return ++this.#pushed;
  }

  /**
   * Drops waiting frames and bases, to free memory. Keeps gaps and deletions, which have no bytes. Returns
   * the files.
   */
  drop(): ObjectFile[] {
    this.#bytes = 0;
    const dropped = this.#waiting;
    this.#waiting = dropped.filter(isSmall);
    return filesOf(dropped);
  }

  /** As `drop`, also for what is being written: bases of all files follow. */
  replace(): void {
    this.#replacements++;
    this.drop();
  }

  /** Forgets everything that was not shipped: it is not this node's any more. */
  reset(): void {
    this.#generation++;
    this.#waiting = [];
    this.#bytes = 0;
    this.shipped = this.#pushed;
  }

  /** Resolves when all entries that were pushed before are in the store. Concurrent calls share a segment. */
  async ship(): Promise<void> {
    this.#next ??= this.#begin();
    return this.#next;
  }

  async #begin(): Promise<void> {
    await this.#current?.catch(() => {});
    this.#next = undefined;
    this.#current = this.#write().finally(() => (this.#current = undefined));
    return this.#current;
  }

  async #write(): Promise<void> {
    const { catalog, files, order, statesOf, ready } = this.#options;
    await ready();
    const right = order.right();
    const [generation, replacements] = [this.#generation, this.#replacements];
    const isReplaced = (): boolean => replacements !== this.#replacements;
    const entries = this.#waiting.splice(0).filter(({ namespace }) => order.isOwn(namespace));
    const last = this.#pushed;
    this.#bytes = 0;
    if (entries.length === 0) {
      this.shipped = last;
      return;
    }
    const states = statesOf(filesOf(entries)); // before more is read
    let written = 0;
    try {
      for (const part of parts(entries)) {
        const number = (catalog.lastSegment?.number ?? 0) + 1;
        const path = await writeSegment(files, number, part);
        if (isReplaced()) throw new Error("Bases replace what was being shipped");
        await order.add({ number, path, stamp: part.at(-1)!.stamp }, part, right);
        written += part.length;
      }
    } catch (error) {
      if (generation !== this.#generation) return;
      const left = entries.slice(written).filter((entry) => !isReplaced() || isSmall(entry));
      this.#waiting.unshift(...left);
      for (const { bytes } of left) this.#bytes += bytes.length;
      throw error;
    }
    if (generation !== this.#generation || isReplaced()) return;
    catalog.putStates(states);
    this.shipped = last;
  }
}

const isSmall = ({ kind }: Entry): boolean => kind === "gap" || kind === "gone";

function* parts(entries: readonly Entry[]): Generator<Entry[]> {
  let part: Entry[] = [];
  let bytes = 0;
  for (const entry of entries) {
    part.push(entry);
    bytes += entry.bytes.length;
    if (bytes < segmentBytesMax) continue;
    yield part;
    part = [];
    bytes = 0;
  }
  if (part.length > 0) yield part;
}

function filesOf(entries: readonly Entry[]): ObjectFile[] {
  const files = new Map<string, ObjectFile>();
  for (const { namespace, name } of entries) files.set(`${namespace}/${name}`, { namespace, name });
  return [...files.values()];
}
