import { connect, type Socket } from "node:net";

/** Sends many queries concurrently over one TCP connection. */
export class DnsStream {
  readonly #socket: Socket;
  readonly #waiting = new Map<number, PromiseWithResolvers<Buffer>>();
  #received: Buffer = Buffer.alloc(0);
  #nextId = 0;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("data", (chunk: Buffer) => this.#read(chunk));
    socket.on("error", () => socket.destroy());
    socket.on("close", () => {
      for (const { reject } of this.#waiting.values()) reject(new Error("the connection was ended"));
    });
  }

  static async open(port: number, host = "127.0.0.1"): Promise<DnsStream> {
    const socket = connect(port, host);
    await new Promise((resolve, reject) => socket.once("connect", resolve).once("error", reject));
    return new DnsStream(socket);
  }

  /** The response to a query, with the query's id. */
  async ask(question: Buffer): Promise<Buffer> {
    while (this.#waiting.has(this.#nextId)) this.#nextId = (this.#nextId + 1) & 0xffff;
    const id = this.#nextId;
    this.#nextId = (id + 1) & 0xffff;
    const frame = Buffer.alloc(2 + question.length);
    frame.writeUInt16BE(question.length, 0);
    question.copy(frame, 2);
    frame.writeUInt16BE(id, 2);
    const waiting = Promise.withResolvers<Buffer>();
    this.#waiting.set(id, waiting);
    this.#socket.write(frame);
    return waiting.promise;
  }

  close(): void {
    this.#socket.destroy();
  }

  #read(chunk: Buffer): void {
    this.#received = Buffer.concat([this.#received, chunk]);
    while (this.#received.length >= 2) {
      const end = 2 + this.#received.readUInt16BE(0);
      if (this.#received.length < end) return;
      const answer = this.#received.subarray(2, end);
      this.#received = this.#received.subarray(end);
      const id = answer.readUInt16BE(0);
      this.#waiting.get(id)?.resolve(answer);
      this.#waiting.delete(id);
    }
  }
}
