import type { SpanEncoding } from "./otlp/encoding.ts";
import type { KeptSpan } from "./spans/span.ts";

/** Maximum number of spans in a request to the collector. Many share its cost, which is that of hundreds of spans. */
export const batchMax = 2048;
/** Maximum number of spans that wait for the collector. Further ones are dropped and counted. */
export const waitingMax = 4096;
/** Maximum size of a batch. A span of an ordinary request has 320 bytes as protobuf, and about 1 KiB as JSON. */
const batchBytes = 768 * 1024;
/** Maximum number of waiting batches, which limits memory also when spans have long texts. */
const batchesMax = 8;

/** Spans as bytes, with room before them for the beginning of the request's body, which names their length. */
export class SpanBatch {
  readonly #encoding: SpanEncoding;
  readonly #bytes: Buffer;
  /** The part of the memory that spans may use. */
  readonly #room: Buffer;
  readonly #start: number;
  #length: number;
  count = 0;

  constructor(encoding: SpanEncoding) {
    this.#encoding = encoding;
    this.#bytes = Buffer.allocUnsafeSlow(batchBytes);
    this.#start = this.#length = encoding.head(batchBytes).length;
    this.#room = this.#bytes.subarray(0, batchBytes - encoding.tail.length);
  }

  /** Adds a span. Returns false if the batch has no room for it. */
  add(span: KeptSpan, originMs: number): boolean {
    if (this.count === batchMax) return false;
    const { separator } = this.#encoding;
    const at = this.count === 0 ? this.#length : this.#length + separator.length;
    const end = this.#encoding.write(span, originMs, this.#room, at);
    if (end < 0) return false;
    if (at > this.#length) this.#bytes.write(separator, this.#length, "latin1");
    this.#length = end;
    this.count++;
    return true;
  }

  /** The body of the request. It is valid until `clear`. */
  body(): Buffer {
    const head = this.#encoding.head(this.#length - this.#start);
    const start = this.#start - head.length;
    this.#bytes.write(head, start, "latin1");
    const end = this.#length + this.#bytes.write(this.#encoding.tail, this.#length, "latin1");
    return this.#bytes.subarray(start, end);
  }

  clear(): void {
    this.#length = this.#start;
    this.count = 0;
  }
}

/** Batches that wait for the collector, in reused memory. */
export class SpanBatches {
  readonly #encoding: SpanEncoding;
  #filling: SpanBatch | undefined;
  readonly #full: SpanBatch[] = [];
  /** A sent batch, for reuse. */
  #free: SpanBatch | undefined;
  /** Number of waiting spans. */
  count = 0;

  constructor(encoding: SpanEncoding) {
    this.#encoding = encoding;
  }

  /** Adds a span. Returns false if there is no room for it. */
  add(span: KeptSpan, originMs: number): boolean {
    const isAdded = this.count < waitingMax && this.#write(span, originMs);
    if (isAdded) this.count++;
    return isAdded;
  }

  #write(span: KeptSpan, originMs: number): boolean {
    if (this.#filling?.add(span, originMs) === true) return true;
    if (this.#filling !== undefined && this.#filling.count > 0) {
      if (this.#full.length === batchesMax - 1) return false;
      this.#full.push(this.#filling);
    }
    this.#filling = this.#free ?? new SpanBatch(this.#encoding);
    this.#free = undefined;
    return this.#filling.add(span, originMs);
  }

  /** Whether a full batch waits. */
  get hasFull(): boolean {
    return this.#full.length > 0 || this.#filling?.count === batchMax;
  }

  /** Takes the oldest batch. Return it with `giveBack` after use. */
  take(): SpanBatch | undefined {
    const oldest = this.#full.shift() ?? this.#filling;
    if (oldest === this.#filling) this.#filling = undefined;
    if (oldest === undefined || oldest.count === 0) return undefined;
    this.count -= oldest.count;
    return oldest;
  }

  giveBack(batch: SpanBatch): void {
    batch.clear();
    this.#free = batch;
  }

  clear(): void {
    this.#full.length = 0;
    this.#filling = undefined;
    this.count = 0;
  }
}
