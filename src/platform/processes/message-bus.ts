import type { BusMessage } from "./protocol.ts";

type Handler = (value: never, relay: () => void) => void | Promise<void>;

/** The connection to the other processes of the node, set by its owner. */
interface Link {
  /** Resolves when all receivers have handled the message. */
  send: (message: BusMessage) => Promise<void>;
  /** Bytes that wait to be sent. */
  waitingBytes: () => number;
}

/**
 * Sends messages between the processes of a node that are not stored, such as that a script stalled a cell.
 * The main process sends to all edge processes, and they send to it. Without a connection, a message is lost.
 */
export class MessageBus {
  readonly #handlers = new Map<string, Handler>();
  readonly #forJoiners = new Map<string, () => unknown>();
  link: Link = { send: async () => {}, waitingBytes: () => 0 };

  /** Sets the handler for a topic. In the main process, `relay` also sends each message to all other edge processes. */
  subscribe<Value>(topic: string, handler: (value: Value, relay: () => void) => void | Promise<void>): void {
    this.#handlers.set(topic, handler);
  }

  /** In the main process: sets the message that an edge process gets when it joins. */
  forJoiners(topic: string, value: () => unknown): void {
    this.#forJoiners.set(topic, value);
  }

  /** Sends a message. In the main process, resolves when it is in effect in every edge process that serves. */
  async publish(topic: string, value: unknown): Promise<void> {
    await this.link.send({ topic, value });
  }

  get waitingBytes(): number {
    return this.link.waitingBytes();
  }

  /** Handles a received message. Called by the owner of the connection. */
  deliver({ topic, value }: BusMessage, relay: () => void = () => {}): void | Promise<void> {
    return this.#handlers.get(topic)?.(value as never, relay);
  }

  messagesForJoiners(): BusMessage[] {
    return [...this.#forJoiners].map(([topic, value]) => ({ topic, value: value() }));
  }
}
