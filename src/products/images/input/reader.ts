/** The reason why an image file is malformed. */
export class Damaged extends Error {}

const windowBytes = 64 * 1024;
/** More than any header, or any animation that is shown, has. */
const piecesMax = 1_000_000;

/** Random access through a window of read-ahead bytes. */
export class Reader {
  readonly sizeBytes: number;
  readonly #read: (buffer: Buffer, position: number) => Promise<number>;
  #window = Buffer.alloc(0);
  #start = 0;
  #pieces = 0;

  constructor(sizeBytes: number, read: (buffer: Buffer, position: number) => Promise<number>) {
    this.sizeBytes = sizeBytes;
    this.#read = read;
  }

  async bytes(position: number, length: number): Promise<Buffer> {
    if (++this.#pieces > piecesMax) throw new Damaged("it has too many parts");
    if (position < 0 || position + length > this.sizeBytes) throw new Damaged("it ends too early");
    if (position < this.#start || position + length > this.#start + this.#window.length) {
      const buffer = Buffer.allocUnsafe(Math.min(Math.max(length, windowBytes), this.sizeBytes - position));
      const read = await this.#read(buffer, position);
      if (read < length) throw new Damaged("it ends too early");
      this.#window = buffer.subarray(0, read);
      this.#start = position;
    }
    return this.#window.subarray(position - this.#start, position - this.#start + length);
  }
}
