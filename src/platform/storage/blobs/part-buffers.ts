/** Memory for parts of uploads: a fixed number of buffers that all uploads share. Further parts wait in order. */
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

  /** Calls `work` with a buffer, which becomes free when `work` has ended. */
  async with<T>(work: (buffer: Buffer) => Promise<T>): Promise<T> {
    if (this.#used === this.#countMax) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#used += 1;
    const buffer = this.#unused.pop() ?? Buffer.allocUnsafeSlow(this.#bytes);
    try {
      return await work(buffer);
    } finally {
      this.#unused.push(buffer);
      const next = this.#waiting.shift();
      if (next !== undefined) next(); // gets this buffer's slot, so that no later part overtakes it
      else if (--this.#used === 0) this.#unused = []; // returned to the system
    }
  }
}
