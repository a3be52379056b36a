import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";

const handshakeGuid = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const opcodes = { text: 1, close: 8, ping: 9, pong: 10 };
const incomingBytesMax = 64 * 1024;
const controlBytesMax = 125;
/** Pings are not answered while more than this waits to be sent. */
const pongsWaitingBytesMax = 64 * 1024;
const pingEveryMs = 30_000;
const closeGraceMs = 1000;

/**
 * The server's end of a WebSocket (RFC 6455) that only sends; it reads control frames only. Frames from the
 * client may be unmasked, because the command line tool sends such, which libraries refuse.
 */
export class SendOnlyWebSocket {
  readonly #socket: Duplex;
  readonly #onClose: () => void;
  readonly #ping: NodeJS.Timeout;
  #received: Buffer = Buffer.alloc(0);
  #isAlive = true;
  #isClosing = false;

  constructor(request: IncomingMessage, socket: Duplex, head: Buffer, protocol: string, onClose: () => void) {
    this.#socket = socket;
    this.#onClose = onClose;
    const key = request.headers["sec-websocket-key"] ?? "";
    const accept = createHash("sha1").update(`${key}${handshakeGuid}`).digest("base64");
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\nSec-WebSocket-Protocol: ${protocol}\r\n\r\n`,
    );
    socket.on("data", (chunk: Buffer) => this.#read(chunk));
    socket.on("error", () => socket.destroy());
    const closed = (): void => {
      clearInterval(this.#ping);
      this.#onClose();
    };
    // The client may have left before this.
    if (socket.closed) setImmediate(closed);
    else socket.once("close", closed);
    if (socket.readableEnded) socket.end();
    else socket.once("end", () => socket.end());
    this.#ping = setInterval(() => this.#keepAlive(), pingEveryMs);
    this.#ping.unref();
    if (head.length > 0) this.#read(head);
  }

  /** Bytes that were sent and not read yet. */
  get waitingBytes(): number {
    return this.#socket.writableLength;
  }

  send(text: string): void {
    if (!this.#isClosing) this.#write(opcodes.text, Buffer.from(text));
  }

  close(code: number, reason = ""): void {
    if (this.#isClosing) return;
    const payload = Buffer.alloc(2 + Buffer.byteLength(reason));
    payload.writeUInt16BE(code);
    payload.write(reason, 2);
    this.#write(opcodes.close, payload);
    this.#isClosing = true;
    this.#socket.end();
    // Does not wait for peers that do not answer.
    setTimeout(() => this.#socket.destroy(), closeGraceMs).unref();
  }

  #keepAlive(): void {
    if (!this.#isAlive) this.#socket.destroy();
    this.#isAlive = false;
    this.#write(opcodes.ping, Buffer.alloc(0));
  }

  #write(opcode: number, payload: Buffer): void {
    if (this.#isClosing || this.#socket.destroyed) return;
    const { length } = payload;
    const head = Buffer.alloc(length < 126 ? 2 : length < 65_536 ? 4 : 10);
    head[0] = 0x80 | opcode;
    head[1] = length < 126 ? length : length < 65_536 ? 126 : 127;
    if (head.length === 4) head.writeUInt16BE(length, 2);
    if (head.length === 10) head.writeBigUInt64BE(BigInt(length), 2);
    this.#socket.write(Buffer.concat([head, payload]));
  }

  #read(chunk: Buffer): void {
    if (this.#isClosing) return; // the peer may send on for a while
    this.#isAlive = true;
    this.#received = this.#received.length === 0 ? chunk : Buffer.concat([this.#received, chunk]);
    for (;;) {
      const frame = readFrame(this.#received);
      if (frame === "too large") this.close(1009);
      if (typeof frame === "string" || this.#isClosing) break;
      this.#received = this.#received.subarray(frame.bytes);
      if (frame.opcode >= opcodes.close && frame.payload.length > controlBytesMax) this.close(1002);
      else if (frame.opcode === opcodes.ping && this.waitingBytes < pongsWaitingBytesMax)
        this.#write(opcodes.pong, frame.payload);
      else if (frame.opcode === opcodes.close) this.close(1000);
    }
  }
}

type Frame = { opcode: number; payload: Buffer; bytes: number };

function readFrame(from: Buffer): Frame | "incomplete" | "too large" {
  if (from.length < 2) return "incomplete";
  const short = from[1]! & 0x7f;
  const lengthBytes = short < 126 ? 0 : short === 126 ? 2 : 8;
  const isMasked = (from[1]! & 0x80) !== 0;
  const start = 2 + lengthBytes + (isMasked ? 4 : 0);
  if (from.length < start) return "incomplete";
  const length =
    lengthBytes === 0 ? short : lengthBytes === 2 ? from.readUInt16BE(2) : Number(from.readBigUInt64BE(2));
  if (length > incomingBytesMax) return "too large";
  if (from.length < start + length) return "incomplete";
  const payload = Buffer.from(from.subarray(start, start + length));
  if (isMasked) for (let i = 0; i < length; i++) payload[i]! ^= from[start - 4 + (i % 4)]!;
  return { opcode: from[0]! & 0x0f, payload, bytes: start + length };
}
