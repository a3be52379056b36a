import type { Note } from "./protocol.ts";

type Take = (value: never, relay: () => void) => void | Promise<void>;

/** The line to the other processes of the node, as the owner of the line sets it. */
interface Line {
  /** Resolves when all who hear the note have taken it. */
  send: (note: Note) => Promise<void>;
  /** Bytes that wait to be sent. */
  waitingBytes: () => number;
}

/**
 * Tells the other processes of the node facts that no database keeps, such as a script that stalled a cell. Edge
 * processes hear main, and main hears them. A note without a line is lost.
 */
export class ProcessNotes {
  readonly #takers = new Map<string, Take>();
  readonly #ofJoiners = new Map<string, () => unknown>();
  line: Line = { send: async () => {}, waitingBytes: () => 0 };

  /** Sets what happens with a topic's notes. In main, `relay` tells them to all other edge processes. */
  on<Value>(topic: string, take: (value: Value, relay: () => void) => void | Promise<void>): void {
    this.#takers.set(topic, take);
  }

  /** In main: the note that an edge process gets when it joins. */
  forJoiners(topic: string, value: () => unknown): void {
    this.#ofJoiners.set(topic, value);
  }

  /** In main, resolves when the note is in effect in every edge process that serves. */
  async tell(topic: string, value: unknown): Promise<void> {
    await this.line.send({ topic, value });
  }

  get waitingBytes(): number {
    return this.line.waitingBytes();
  }

  /** Called by the line. */
  take({ topic, value }: Note, relay: () => void = () => {}): void | Promise<void> {
    return this.#takers.get(topic)?.(value as never, relay);
  }

  joinersNotes(): Note[] {
    return [...this.#ofJoiners].map(([topic, value]) => ({ topic, value: value() }));
  }
}
