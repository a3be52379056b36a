import type { WebSocket } from "ws";
import type { Cell } from "../../../sandbox/cell.ts";
import type { InvocationListener } from "./invocation-runner.ts";
import { readEnding } from "./parsed-messages.ts";
import { frame, messageBytesMax, openCallsMax, readFrames } from "../../../sandbox/worker/frames.ts";
import type { Ending, Signal } from "../worker/messages.ts";
import { unawaited } from "../../../platform/util/uncaught.ts";

/** Receives the end of invocations and of the stream itself. */
export interface WorkflowStreamListener {
  /** Only for invocations that were started on this stream and have not ended yet. */
  ended(invocation: number, ending: Ending): void;
  /** The connection closed. `isBroken` when the cell violated the protocol, so other code must control it. */
  lost(isBroken: boolean): void;
  fault(error: unknown): void;
}

/** Reading stops above this many unhandled bytes: the database is slower than the cell. */
const unsettledBytesMax = 32 * 1024 * 1024;

/**
 * The engine's side of a workflow stream: one WebSocket into a cell that multiplexes the messages of its
 * invocations. sandbox/worker/workflow-stream.ts is the other side. Messages count only for invocations that
 * were started on this stream and still run.
 */
export class WorkflowStream {
  readonly cell: Cell;
  /** When an invocation last ended here: `performance.now()`. */
  lastRunAt = performance.now();
  readonly #socket: WebSocket;
  readonly #calls: () => InvocationListener;
  readonly #listener: WorkflowStreamListener;
  /** The running invocations, with their number of unanswered calls. */
  readonly #invocations = new Map<number, { openCalls: number }>();
  #outgoing = "";
  #unsettledBytes = 0;
  #isClosed = false;

  private constructor(
    cell: Cell,
    socket: WebSocket,
    calls: () => InvocationListener,
    listener: WorkflowStreamListener,
  ) {
    this.cell = cell;
    this.#socket = socket;
    this.#calls = calls;
    this.#listener = listener;
    let isBroken = false;
    socket.on("message", (data: Buffer) => {
      if (this.#isClosed || this.#receive(data)) return;
      isBroken = true;
      this.close();
    });
    socket.on("error", ({ code }: NodeJS.ErrnoException) => {
      // Errors of the library itself: the cell did not speak WebSocket, or its message was too large.
      isBroken ||= code?.startsWith("WS_ERR_") === true;
      this.close();
    });
    socket.on("close", () => {
      this.#isClosed = true;
      listener.lost(isBroken);
    });
  }

  static async open(
    cell: Cell,
    calls: () => InvocationListener,
    listener: WorkflowStreamListener,
  ): Promise<WorkflowStream> {
    const { WebSocket } = await import("ws");
    const { path, headers } = cell.workflowStreamAddress;
    const socket = new WebSocket(`ws+unix:${path}:/`, {
      headers,
      perMessageDeflate: false,
      maxPayload: messageBytesMax,
      skipUTF8Validation: true,
      // A cell that sends pings and reads no pongs would fill this process's memory.
      autoPong: false,
    });
    await new Promise<void>((resolve, reject) => {
      socket.once("open", () => resolve());
      socket.once("error", reject);
    });
    return new WorkflowStream(cell, socket, calls, listener);
  }

  run(invocation: number, script: string, run: string, className: string, start: string): void {
    this.#invocations.set(invocation, { openCalls: 0 });
    this.#send("R", invocation, 0, `${JSON.stringify([script, run, className])}\n${start}`);
  }
  begin(invocation: number, start: string): void {
    this.#send("B", invocation, 0, start);
  }
  answer(invocation: number, call: number, answer: string): void {
    const running = this.#invocations.get(invocation);
    if (running === undefined) return;
    running.openCalls--;
    this.#send("A", invocation, call, answer);
  }
  signal(invocation: number, signal: Signal): void {
    this.#send("S", invocation, 0, signal);
  }
  /** Ignores all further messages of an invocation. */
  forget(invocation: number): void {
    this.#invocations.delete(invocation);
  }
  close(): void {
    this.#isClosed = true;
    this.#socket.terminate();
  }

  /** Frames of one turn of the event loop go out as one message. */
  #send(kind: string, invocation: number, call: number, text: string): void {
    if (this.#outgoing === "") setImmediate(() => this.#flush());
    this.#outgoing += frame(kind, invocation, call, text);
  }

  #flush(): void {
    const text = this.#outgoing;
    this.#outgoing = "";
    // The library frames a buffer as one piece, which is sent at once.
    if (this.#socket.readyState === this.#socket.OPEN)
      this.#socket.send(Buffer.from(text), { binary: false });
  }

  /** False when the cell violates the protocol. */
  #receive(data: Buffer): boolean {
    this.cell.touch();
    let isKnown = true;
    const settling: Promise<void>[] = [];
    const isWhole = readFrames(data.toString(), (kind, invocation, call, text) => {
      try {
        if (kind === "C") {
          const settled = this.#call(invocation, call, text);
          if (settled !== undefined) settling.push(settled);
        } else if (kind === "N") {
          if (this.#invocations.has(invocation)) this.#calls().note(invocation, text);
        } else if (kind === "E") this.#ended(invocation, readEnding(text));
        else isKnown = false;
      } catch (error) {
        this.#listener.fault(error);
        this.#ended(
          invocation,
          failed("The platform could not continue the workflow. The platform's log has the reason."),
        );
      }
    });
    if (settling.length > 0) unawaited(this.#settle(settling, data.length));
    return isWhole && isKnown;
  }

  #call(invocation: number, call: number, text: string): Promise<void> | undefined {
    const running = this.#invocations.get(invocation);
    if (running === undefined) return undefined;
    if (++running.openCalls <= openCallsMax) return this.#calls().call(invocation, call, text);
    this.#ended(invocation, failed(`The workflow waits for more than ${openCallsMax} steps at once`));
    return undefined;
  }

  #ended(invocation: number, ending: Ending): void {
    if (!this.#invocations.delete(invocation)) return;
    this.#listener.ended(invocation, ending);
    this.#calls().ended(invocation, ending);
  }

  /** Resumes reading once the engine has caught up. */
  async #settle(settling: readonly Promise<void>[], bytes: number): Promise<void> {
    this.#unsettledBytes += bytes;
    if (this.#unsettledBytes > unsettledBytesMax) this.#socket.pause();
    await Promise.allSettled(settling);
    this.#unsettledBytes -= bytes;
    if (this.#socket.isPaused && this.#unsettledBytes <= unsettledBytesMax / 2) this.#socket.resume();
  }
}

const failed = (message: string): Ending => ({
  end: "throw",
  error: { name: "WorkflowInternalError", message },
  unasked: [],
});
