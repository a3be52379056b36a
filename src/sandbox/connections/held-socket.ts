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
 * rejects, the connection breaks. If the cell resets the connection, which it does when it has answered a request without
 * reading its body, the bytes that it sent before are passed first.
 */
export class HeldSocket extends Duplex {
  readonly #socket: Socket;
  readonly #gate: Gate | undefined;
  #hasEnded = false;
  /** Bytes that wait at the gate. */
  #passing: Promise<void> | undefined;

  constructor(socket: Socket, gate: Gate | undefined) {
    super({ allowHalfOpen: false });
    this.#socket = socket;
    this.#gate = gate;
    socket.on("data", (chunk: Buffer) => this.#begin(chunk));
    socket.on("end", () => this.#begin(null));
    socket.on("timeout", () => this.emit("timeout"));
    socket.on("error", (error) => this.#break(error));
    socket.on("close", () => this.#break());
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

  /** Ends the connection with the cell, and lets the other side finish. */
  protected leaveCell(): void {
    this.#hasEnded = true;
    this.#socket.destroy();
  }

  #begin(chunk: Buffer | null): void {
    if (chunk === null) this.#hasEnded = true;
    if (this.#gate === undefined) {
      if (!this.push(chunk)) this.#socket.pause();
      return;
    }
    const passing = this.#pass(chunk).finally(() => {
      if (this.#passing === passing) this.#passing = undefined;
    });
    this.#passing = passing;
    unawaited(passing);
  }

  /** The connection has broken. The bytes that it received are passed before its end. */
  #break(error?: Error): void {
    if (this.#hasEnded) return;
    if (this.#passing === undefined && this.readableLength === 0) {
      this.destroy(error);
      return;
    }
    this.#hasEnded = true;
    unawaited(this.#endAfter(this.#passing));
  }

  async #endAfter(passing: Promise<void> | undefined): Promise<void> {
    await passing;
    this.push(null);
  }

  async #pass(chunk: Buffer | null): Promise<void> {
    this.#socket.pause();
    try {
      await this.#gate?.();
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

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#socket.write(chunk, () => done()); // the socket reports an error as an event, too
  }

  /** The head of a request and a short body are one write, so that the cell has both before it answers. */
  override _writev(chunks: readonly { chunk: Buffer }[], done: () => void): void {
    const all = chunks.map(({ chunk }) => chunk);
    this.#socket.cork();
    for (const chunk of all.slice(0, -1)) this.#socket.write(chunk);
    this.#socket.write(all.at(-1)!, () => done());
    this.#socket.uncork();
  }

  override _final(done: () => void): void {
    if (this.#socket.destroyed) return done(); // it would not call back
    this.#socket.end(() => done());
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#socket.destroy();
    done(error);
  }
}
