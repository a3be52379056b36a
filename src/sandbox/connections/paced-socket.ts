import type { Socket } from "node:net";
import { FrameBoundaries } from "../../edge/http/frame-boundaries.ts";
import type { CloseStatus } from "../../edge/http/going-away.ts";
import { bytesPerUnit, FramePace, turnUnits, type PacedCell } from "../limits/frame-pace.ts";
import { UnfinishedMessages, type MessageReceiver } from "../limits/unfinished-messages.ts";
import { HeldSocket } from "./held-socket.ts";

/** The limits that the WebSockets of a cell share. */
export interface WebSocketLimits {
  pace: FramePace;
  unfinished: UnfinishedMessages;
}

export const webSocketLimits = (cell: PacedCell): WebSocketLimits => ({
  pace: new FramePace(cell),
  unfinished: new UnfinishedMessages(),
});

type Done = (error?: Error | null) => void;

const headEnd = "\r\n\r\n";

/**
 * A WebSocket of a cell. Frames for the cell wait for their turn, and the connection takes no more bytes meanwhile, so
 * that a sender has to wait too. A message for which there is no memory ends the connection with the cell.
 */
export class PacedSocket extends HeldSocket implements MessageReceiver {
  readonly #socket: Socket;
  readonly #limits: WebSocketLimits;
  readonly accountId: string;
  readonly #frames = new FrameBoundaries();
  #isRefused = false;
  /** The end of what was written before the first frame; undefined after the head of an answer. */
  #head: string | undefined;
  /** Called after the connection with the cell was ended for its messages. */
  onRefused: (status: CloseStatus) => void = () => this.destroy();

  /** `isAnswered`: whether the frames begin at once. Otherwise the head of an answer with status 101 comes first. */
  constructor(socket: Socket, accountId: string, limits: WebSocketLimits, isAnswered: boolean) {
    super(socket, undefined);
    this.#socket = socket;
    this.#limits = limits;
    this.accountId = accountId;
    this.#head = isAnswered ? undefined : "";
    this.once("close", () => limits.unfinished.note(this, 0));
  }

  refuseMessage(): void {
    this.#refuse(1009);
  }

  #refuse(status: CloseStatus): void {
    this.#isRefused = true;
    this.#limits.unfinished.note(this, 0);
    this.leaveCell();
    this.onRefused(status);
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: Done): void {
    this.#pass(this.#headBytes(chunk), chunk, done);
  }

  override _writev(chunks: readonly { chunk: Buffer }[], done: Done): void {
    this._write(Buffer.concat(chunks.map(({ chunk }) => chunk)), "binary", done);
  }

  /** Number of bytes that still belong to the head of an answer. */
  #headBytes(chunk: Buffer): number {
    if (this.#head === undefined) return 0;
    const before = this.#head;
    const text = before + chunk.toString("latin1");
    const end = text.indexOf(headEnd);
    this.#head = end < 0 ? text.slice(1 - headEnd.length) : undefined;
    return end < 0 ? chunk.length : end + headEnd.length - before.length;
  }

  /** Passes the bytes before `at`, and as many frames from there on as the connection's turn allows. */
  #pass(at: number, chunk: Buffer, done: Done): void {
    const { pace, unfinished } = this.#limits;
    if (this.#isRefused || this.destroyed) return done();
    let end = at;
    for (let units = 0; end < chunk.length && pace.hasRoom(this.accountId);) {
      if (units >= turnUnits && pace.isAwaited(this.accountId)) break;
      const [from, frames] = [end, this.#frames.frames];
      end = this.#frames.step(chunk, end);
      const cost = this.#frames.frames - frames + (end - from) / bytesPerUnit;
      pace.spend(this.accountId, cost);
      units += cost;
    }
    if (this.#frames.hasReservedBit) this.#refuse(1002);
    else unfinished.note(this, this.#frames.unfinishedBytes);
    if (this.#isRefused) return done();
    if (end === chunk.length) {
      this.#socket.write(chunk, () => done());
      return;
    }
    if (end > 0) this.#socket.write(chunk.subarray(0, end));
    pace.wait(this.accountId, () => this.#pass(0, chunk.subarray(end), done));
  }
}

const extensions = "sec-websocket-extensions";

/** Headers of an upgrade that offer no compression: a short message could take 32 MiB of a cell. */
export const withoutExtensions = (headers: readonly string[]): string[] =>
  headers.filter((_, i) => headers[i - (i % 2)]!.toLowerCase() !== extensions);
