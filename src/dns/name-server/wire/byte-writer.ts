/** Writes bytes to a growing buffer. */
export class ByteWriter {
  #bytes = Buffer.allocUnsafe(64);
  #length = 0;

  uint8(value: number): this {
    this.#reserve(1);
    this.#length = this.#bytes.writeUInt8(value, this.#length);
    return this;
  }

  uint16(value: number): this {
    this.#reserve(2);
    this.#length = this.#bytes.writeUInt16BE(value, this.#length);
    return this;
  }

  uint32(value: number): this {
    this.#reserve(4);
    this.#length = this.#bytes.writeUInt32BE(value, this.#length);
    return this;
  }

  uint48(value: number): this {
    this.#reserve(6);
    this.#length = this.#bytes.writeUIntBE(value, this.#length, 6);
    return this;
  }

  bytes(value: Uint8Array): this {
    this.#reserve(value.length);
    this.#bytes.set(value, this.#length);
    this.#length += value.length;
    return this;
  }

  /** Writes one byte for each character. */
  latin1(text: string): this {
    this.#reserve(text.length);
    this.#length += this.#bytes.write(text, this.#length, "latin1");
    return this;
  }

  /** Writes a character-string (RFC 1035 §3.3): one byte of length, then the bytes. */
  characters(text: string): this {
    return this.uint8(text.length).latin1(text);
  }

  /** A copy of the written bytes, of exactly their size. */
  done(): Buffer {
    return Buffer.from(this.#bytes.subarray(0, this.#length));
  }

  #reserve(count: number): void {
    if (this.#length + count <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafe(Math.max(this.#bytes.length * 2, this.#length + count));
    this.#bytes.copy(larger, 0, 0, this.#length);
    this.#bytes = larger;
  }
}
