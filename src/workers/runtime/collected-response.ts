import { Writable } from "node:stream";
import { CellError } from "../../sandbox/errors.ts";

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

  /** The answer, which has ended. Throws a CellError if it had too many bytes. */
  get body(): Buffer {
    if (this.#bytes > this.#bytesMax)
      throw new CellError("exception", `The answer has more than ${this.#bytesMax} bytes.`);
    return Buffer.concat(this.#chunks);
  }

  /** As `body`, for an answer that the caller destroys when it takes too long: throws a CellError with `late` then. */
  bodyInTime(late: string): Buffer {
    const { body } = this;
    if (this.destroyed && !this.writableFinished) throw new CellError("exception", late);
    return body;
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
