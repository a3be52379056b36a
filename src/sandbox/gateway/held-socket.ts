import type { Socket } from "node:net";
import { Duplex } from "node:stream";
import { unawaited } from "../../platform/util/uncaught.ts";

/** Resolves when bytes that a cell has sent may be used; rejects if that takes too long. */
export type Gate = () => Promise<void>;

/** A connection with a cell, which is held if there is a gate. Its users need no addresses and options of a socket. */
export const heldAt = (gate: Gate | undefined, socket: Socket): Socket =>
  gate === undefined ? socket : (new HeldSocket(socket, gate) as unknown as Socket);

/**
 * A connection with a cell whose received bytes wait at a gate, in order. Bytes for the cell do not wait. If the gate
 * rejects, the connection breaks.
 */
export class HeldSocket extends Duplex {
  readonly #socket: Socket;
  readonly #gate: Gate;
  #hasEnded = false;

  constructor(socket: Socket, gate: Gate) {
    super({ allowHalfOpen: false });
    this.#socket = socket;
    this.#gate = gate;
    socket.on("data", (chunk: Buffer) => unawaited(this.#pass(chunk)));
    socket.on("end", () => unawaited(this.#pass(null)));
    socket.on("timeout", () => this.emit("timeout"));
    socket.on("error", (error) => this.destroy(error));
    socket.on("close", () => {
      if (!this.#hasEnded) this.destroy();
    });
  }

  get bytesRead(): number {
    return this.#socket.bytesRead;
  }

  get bytesWritten(): number {
    return this.#socket.bytesWritten;
  }

  setTimeout(ms: number, onTimeout?: () => void): this {
    if (onTimeout !== undefined) this.once("timeout", onTimeout);
    this.#socket.setTimeout(ms);
    return this;
  }

  ref(): this {
    this.#socket.ref();
    return this;
  }

  unref(): this {
    this.#socket.unref();
    return this;
  }

  destroySoon(): void {
    if (this.writable) this.end();
    if (this.writableFinished) this.destroy();
    else this.once("finish", () => this.destroy());
  }

  async #pass(chunk: Buffer | null): Promise<void> {
    if (chunk === null) this.#hasEnded = true;
    this.#socket.pause();
    try {
      await this.#gate();
    } catch (error) {
      this.destroy(error as Error);
      return;
    }
    if (this.destroyed) return;
    if (this.push(chunk)) this.#socket.resume();
  }

  override _read(): void {
    this.#socket.resume();
  }

  override _write(chunk: Buffer, encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#socket.write(chunk, encoding, done);
  }

  override _final(done: () => void): void {
    this.#socket.end(done);
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#socket.destroy();
    done(error);
  }
}
