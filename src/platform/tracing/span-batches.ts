import { requestEnd } from "./otlp-json.ts";

/** Maximum number of spans in a request to the collector. */
export const batchMax = 512;
/** Maximum number of spans that wait for the collector. Further ones are dropped and counted. */
export const waitingMax = 4096;
/** Maximum size of a batch. A span of an ordinary request has about 1 KiB. */
const batchBytes = 768 * 1024;
/** Maximum number of waiting batches, which limits memory also when spans have long texts. */
const batchesMax = waitingMax / batchMax;

const comma = ",".charCodeAt(0);

/** Spans in the body of a request to the collector. Only the end of the body is missing until `body`. */
export class SpanBatch {
  readonly #bytes: Buffer;
  #length: number;
  readonly #start: number;
  count = 0;

  constructor(start: string) {
    this.#bytes = Buffer.allocUnsafeSlow(batchBytes);
    this.#length = this.#start = this.#bytes.write(start, "latin1");
  }

  /** Adds a span as JSON in ASCII. Returns false if the batch has no room for it. */
  add(json: string): boolean {
    if (this.count === batchMax) return false;
    if (this.#length + 1 + json.length + requestEnd.length > batchBytes) return false;
    if (this.count > 0) this.#bytes[this.#length++] = comma;
    this.#length += this.#bytes.write(json, this.#length, "latin1");
    this.count++;
    return true;
  }

  /** The body of the request. It is valid until `clear`. */
  body(): Buffer {
    const end = this.#length + this.#bytes.write(requestEnd, this.#length, "latin1");
    return this.#bytes.subarray(0, end);
  }

  clear(): void {
    this.#length = this.#start;
    this.count = 0;
  }
}

/** Batches that wait for the collector, in reused memory. */
export class SpanBatches {
  readonly #start: string;
  #filling: SpanBatch | undefined;
  readonly #full: SpanBatch[] = [];
  /** A sent batch, for reuse. */
  #free: SpanBatch | undefined;

  /** `start` is the beginning of each request's body. */
  constructor(start: string) {
    this.#start = start;
  }

  /** Whether there may be room for another span. */
  get hasRoom(): boolean {
    return this.#full.length < batchesMax - 1 || this.#filling?.count !== batchMax;
  }

  /** Adds a span as JSON in ASCII. Returns false if there is no room for it. */
  add(json: string): boolean {
    if (this.#filling?.add(json) === true) return true;
    if (this.#filling !== undefined && this.#filling.count > 0) {
      if (this.#full.length === batchesMax - 1) return false;
      this.#full.push(this.#filling);
    }
    this.#filling = this.#free ?? new SpanBatch(this.#start);
    this.#free = undefined;
    return this.#filling.add(json);
  }

  /** Whether a full batch waits. */
  get hasFull(): boolean {
    return this.#full.length > 0 || this.#filling?.count === batchMax;
  }

  get count(): number {
    return this.#full.reduce((sum, { count }) => sum + count, this.#filling?.count ?? 0);
  }

  /** Takes the oldest batch. Return it with `giveBack` after use. */
  take(): SpanBatch | undefined {
    const oldest = this.#full.shift() ?? this.#filling;
    if (oldest === this.#filling) this.#filling = undefined;
    return oldest === undefined || oldest.count === 0 ? undefined : oldest;
  }

  giveBack(batch: SpanBatch): void {
    batch.clear();
    this.#free = batch;
  }

  clear(): void {
    this.#full.length = 0;
    this.#filling = undefined;
  }
}
