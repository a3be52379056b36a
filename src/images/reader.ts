/** What is wrong with a file that begins as an image. */
export class Damaged extends Error {}

const windowBytes = 64 * 1024;
/** More pieces are in no picture's header, nor frames in any animation that is shown. */
const piecesMax = 1_000_000;

/** Random access over a window that is read ahead. */
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
    if (++this.#pieces > piecesMax) throw new Damaged("it is made of too many pieces");
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
