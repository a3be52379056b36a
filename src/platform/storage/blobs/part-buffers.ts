/** Memory for parts of uploads: a number of buffers that all uploads share. More parts wait, in their order. */
export class PartBuffers {
  readonly #bytes: number;
  readonly #countMax: number;
  readonly #waiting: (() => void)[] = [];
  #unused: Buffer[] = [];
  #used = 0;

  constructor(countMax: number, bytes: number) {
    this.#countMax = countMax;
    this.#bytes = bytes;
  }

  /** Calls `work` with a buffer, which is free again once that has ended. */
  async with<T>(work: (buffer: Buffer) => Promise<T>): Promise<T> {
    if (this.#used === this.#countMax) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#used += 1;
    const buffer = this.#unused.pop() ?? Buffer.allocUnsafeSlow(this.#bytes);
    try {
      return await work(buffer);
    } finally {
      this.#unused.push(buffer);
      const next = this.#waiting.shift();
      if (next !== undefined) next(); // takes over the place, so that no later part overtakes it
      else if (--this.#used === 0) this.#unused = []; // given back to the system
    }
  }
}
