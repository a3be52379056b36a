import type { Note } from "./protocol.ts";

type Take = (value: never, relay: () => void) => void | Promise<void>;

/** The connection to the other processes of the node, set by its owner. */
interface Line {
  /** Resolves when all receivers have handled the note. */
  send: (note: Note) => Promise<void>;
  /** Bytes that wait to be sent. */
  waitingBytes: () => number;
}

/**
 * Sends messages between the processes of a node that are not stored, such as that a script stalled a cell.
 * The main process sends to all edge processes, and they send to it. Without a connection, a note is lost.
 */
export class ProcessNotes {
  readonly #takers = new Map<string, Take>();
  readonly #ofJoiners = new Map<string, () => unknown>();
  line: Line = { send: async () => {}, waitingBytes: () => 0 };

  /** Sets the handler for a topic. In the main process, `relay` also sends each note to all other edge processes. */
  on<Value>(topic: string, take: (value: Value, relay: () => void) => void | Promise<void>): void {
    this.#takers.set(topic, take);
  }

  /** In the main process: sets the note that an edge process gets when it joins. */
  forJoiners(topic: string, value: () => unknown): void {
    this.#ofJoiners.set(topic, value);
  }

  /** Sends a note. In the main process, resolves when it is in effect in every edge process that serves. */
  async tell(topic: string, value: unknown): Promise<void> {
    await this.line.send({ topic, value });
  }

  get waitingBytes(): number {
    return this.line.waitingBytes();
  }

  /** Handles a received note. Called by the owner of the connection. */
  take({ topic, value }: Note, relay: () => void = () => {}): void | Promise<void> {
    return this.#takers.get(topic)?.(value as never, relay);
  }

  joinersNotes(): Note[] {
    return [...this.#ofJoiners].map(([topic, value]) => ({ topic, value: value() }));
  }
}
