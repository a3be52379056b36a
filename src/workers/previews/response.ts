import { Writable } from "node:stream";

/** A response, or its beginning. */
export interface TakenResponse {
  status: number;
  /** Names and values in turn. */
  headers: readonly string[];
  body: Buffer;
  isWhole: boolean;
}

/** The response of a preview, in memory. Bytes beyond the limit are not read, so their writer waits. */
export class PreviewResponse extends Writable {
  headersSent = false;
  status = 0;
  headers: readonly string[] = [];
  isTruncated = false;
  /** Resolves when the limit is reached. */
  readonly full: Promise<void>;
  readonly #fill: () => void;
  readonly #chunks: Buffer[] = [];
  #bytesLeft: number;

  constructor(bytesMax: number) {
    super();
    this.#bytesLeft = bytesMax;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.full = promise;
    this.#fill = resolve;
  }

  writeHead(status: number, _text: string, headers: readonly string[]): this {
    this.headersSent = true;
    this.status = status;
    this.headers = headers;
    return this;
  }

  /** The part that has arrived so far. */
  get taken(): TakenResponse {
    const isWhole = this.writableEnded && !this.isTruncated;
    return { status: this.status, headers: this.headers, body: Buffer.concat(this.#chunks), isWhole };
  }

  override _write(chunk: Buffer, _encoding: string, done: (error?: Error) => void): void {
    if (chunk.length > this.#bytesLeft) {
      this.#chunks.push(chunk.subarray(0, this.#bytesLeft));
      this.#bytesLeft = 0;
      this.isTruncated = true;
      this.#fill();
      return;
    }
    this.#bytesLeft -= chunk.length;
    this.#chunks.push(chunk);
    done();
  }
}
