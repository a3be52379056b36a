/** Lines in memory that is written at once, and used again afterwards. */
export class LineChunk {
  readonly #bytes: Buffer;
  #length = 0;

  constructor(size: number) {
    this.#bytes = Buffer.allocUnsafeSlow(size);
  }

  /** Adds a line in ASCII. Returns false if there is no room for it. */
  add(line: string): boolean {
    if (this.#length + line.length > this.#bytes.length) return false;
    this.#length += this.#bytes.write(line, this.#length, "latin1");
    return true;
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
