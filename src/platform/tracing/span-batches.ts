import { requestEnd } from "./otlp-json.ts";

/** Spans of one request to the collector. */
export const batchMax = 512;
/** Spans that wait for the collector. More are dropped and counted. */
export const waitingMax = 4096;
/** Of one batch. A span of ordinary requests has about 1 KiB. */
const batchBytes = 768 * 1024;
/** Batches that wait: a bound for their bytes, also of spans with long texts. */
const batchesMax = waitingMax / batchMax;

const comma = ",".charCodeAt(0);

/** Spans as a request for the collector, which is complete but for its end. */
export class SpanBatch {
  readonly #bytes: Buffer;
  #length: number;
  readonly #start: number;
  count = 0;

  constructor(start: string) {
    this.#bytes = Buffer.allocUnsafeSlow(batchBytes);
    this.#length = this.#start = this.#bytes.write(start, "latin1");
  }

  /** Whether it had room for the JSON of a span, which is ASCII. */
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

/** Batches that wait for the collector, in memory that is used again. */
export class SpanBatches {
  readonly #start: string;
  #filling: SpanBatch | undefined;
  readonly #full: SpanBatch[] = [];
  /** One that was sent, for the next spans. */
  #free: SpanBatch | undefined;

  /** `start` is the beginning of each request. */
  constructor(start: string) {
    this.#start = start;
  }

  /** Whether another span may be added. */
  get hasRoom(): boolean {
    return this.#full.length < batchesMax - 1 || this.#filling?.count !== batchMax;
  }

  /** Whether a span was taken. */
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

  /** Whether a whole batch waits. */
  get hasFull(): boolean {
    return this.#full.length > 0 || this.#filling?.count === batchMax;
  }

  get count(): number {
    return this.#full.reduce((sum, { count }) => sum + count, this.#filling?.count ?? 0);
  }

  /** Takes the oldest batch. Give it back after its use. */
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
