import type { WebSocket } from "ws";
import type { Cell } from "../cells/cell.ts";
import type { CellListener } from "./cells.ts";
import { readEnding } from "./said.ts";
import type { Ending, Signal } from "./worker/messages.ts";

/** The engine's side of a lane: one WebSocket into a cell, over which its segments run. See worker/lane.ts for the lines. */
export class Lane {
  readonly cell: Cell;
  /** When something ended here that ran: `performance.now()`. */
  lastRunAt = performance.now();
  readonly #socket: WebSocket;
  readonly #listener: () => CellListener;
  readonly #onEnded: (segment: number, ending: Ending) => void;
  #outgoing = "";

  private constructor(
    cell: Cell,
    socket: WebSocket,
    listener: () => CellListener,
    onEnded: (segment: number, ending: Ending) => void,
  ) {
    this.cell = cell;
    this.#socket = socket;
    this.#listener = listener;
    this.#onEnded = onEnded;
    socket.on("message", (data: Buffer) => this.#receive(data.toString()));
  }

  static async open(
    cell: Cell,
    listener: () => CellListener,
    onEnded: (segment: number, ending: Ending) => void,
    onLost: () => void,
  ): Promise<Lane> {
    const { WebSocket } = await import("ws");
    const { path, headers } = cell.laneAddress;
    const socket = new WebSocket(`ws+unix:${path}:/`, {
      headers,
      perMessageDeflate: false,
      maxPayload: 0,
      skipUTF8Validation: true,
    });
    await new Promise<void>((resolve, reject) => {
      socket.once("open", () => resolve());
      socket.once("error", reject);
    });
    const lane = new Lane(cell, socket, listener, onEnded);
    socket.on("error", () => {}); // what it means is seen by its end
    socket.on("close", onLost);
    return lane;
  }

  run(segment: number, script: string, run: string, className: string, start: string): void {
    this.#send(`R\t${segment}\t${script}\t${run}\t${className}\t${start}`);
  }
  begin(segment: number, start: string): void {
    this.#send(`B\t${segment}\t${start}`);
  }
  answer(segment: number, call: number, answer: string): void {
    this.#send(`A\t${segment}\t${call}\t${answer}`);
  }
  signal(segment: number, signal: Signal): void {
    this.#send(`S\t${segment}\t${signal}`);
  }
  close(): void {
    this.#socket.terminate();
  }

  /** What is said in one turn goes out as one message. */
  #send(line: string): void {
    if (this.#outgoing === "") setImmediate(() => this.#flush());
    this.#outgoing += this.#outgoing === "" ? line : `\n${line}`;
  }

  #flush(): void {
    const text = this.#outgoing;
    this.#outgoing = "";
    // A buffer is framed into one piece, which goes out at once.
    if (this.#socket.readyState === this.#socket.OPEN)
      this.#socket.send(Buffer.from(text), { binary: false });
  }

  #receive(text: string): void {
    this.cell.touch();
    const listener = this.#listener();
    for (const line of text.split("\n")) {
      const [kind, number, first, second] = line.split("\t") as [string, string, string, string];
      const segment = Number(number);
      if (kind === "C") listener.call(segment, Number(first), second);
      else if (kind === "N") listener.note(segment, first);
      else {
        const ending = readEnding(first);
        this.#onEnded(segment, ending);
        listener.ended(segment, ending);
      }
    }
  }
}
