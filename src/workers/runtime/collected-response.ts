import { Writable } from "node:stream";

/** Collects an answer in memory, for callers other than visitors. */
export class CollectedResponse extends Writable {
  headersSent = false;
  status = 0;
  readonly #chunks: Buffer[] = [];
  readonly #bytesMax: number;
  #bytes = 0;

  constructor(bytesMax: number) {
    super();
    this.#bytesMax = bytesMax;
    this.on("error", () => {}); // reported to the writer
  }

  writeHead(status: number): this {
    this.headersSent = true;
    this.status = status;
    return this;
  }

  get body(): Buffer {
    return Buffer.concat(this.#chunks);
  }

  override _write(chunk: Buffer, _encoding: string, done: (error?: Error) => void): void {
    this.#bytes += chunk.length;
    if (this.#bytes > this.#bytesMax) {
      done(new Error(`the answer has more than ${this.#bytesMax} bytes`));
      return;
    }
    this.#chunks.push(chunk);
    done();
  }
}
