/**
 * Divides the bytes of temporary files between accounts. An account has at most as many as it leaves free, so a newcomer
 * always finds room, however much the others have.
 */
export class InputShares {
  readonly #bytesMax: number;
  readonly #accounts = new Map<string, number>();
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Counts more bytes of an account. Returns false, and counts nothing, if they are not within its share. */
  take(accountId: string, bytes: number): boolean {
    const taken = (this.#accounts.get(accountId) ?? 0) + bytes;
    if (taken > this.#bytesMax - this.#bytes - bytes) return false;
    this.#accounts.set(accountId, taken);
    this.#bytes += bytes;
    return true;
  }

  give(accountId: string, bytes: number): void {
    const left = (this.#accounts.get(accountId) ?? 0) - bytes;
    if (left > 0) this.#accounts.set(accountId, left);
    else this.#accounts.delete(accountId);
    this.#bytes -= bytes;
  }
}
