import type { WriteBytes } from "./write-bytes.ts";

/** Lines in memory that is written at once, and used again afterwards. */
export class LineChunk {
  readonly #bytes: Buffer;
  #length = 0;

  constructor(size: number) {
    this.#bytes = Buffer.allocUnsafeSlow(size);
  }

  /** Adds a line. Returns the number of bytes that are missing; 0 if it has been added. */
  add<T>(value: T, write: WriteBytes<T>): number {
    const end = write(value, this.#bytes, this.#length);
    if (end > this.#bytes.length) return end - this.#bytes.length;
    this.#length = end;
    return 0;
  }

  get isEmpty(): boolean {
    return this.#length === 0;
  }

  /** The lines. They are valid until `clear`. */
  get lines(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  clear(): void {
    this.#length = 0;
  }
}
