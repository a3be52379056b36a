import { mebibyte } from "../../platform/bytes.ts";

/** Memory of a cell for parts of messages. One message of 32 MiB, the largest that workerd takes, always has room. */
const unfinishedBytesMax = 64 * mebibyte;
/** Smaller parts are not counted: those of all WebSockets in a cell take 48 MiB. */
const ignoredBytes = 16 * 1024;

/** A WebSocket whose messages are counted. */
export interface MessageReceiver {
  readonly accountId: string;
  /** The message is too large; frees its memory in the cell. */
  refuseMessage(): void;
}

interface Account {
  bytes: number;
  receivers: Map<MessageReceiver, number>;
}

/**
 * Bounds the memory of messages that a cell has received in part, and can neither use nor drop. If all of them are too
 * large together, the account with the most gives up its largest one.
 */
export class UnfinishedMessages {
  readonly #accounts = new Map<string, Account>();
  #bytes = 0;

  get bytes(): number {
    return this.#bytes;
  }

  /** `bytes` of the current message have been passed; 0 between two messages, and at the end of the connection. */
  note(receiver: MessageReceiver, bytes: number): void {
    const { accountId } = receiver;
    const account = this.#accounts.get(accountId);
    const before = account?.receivers.get(receiver) ?? 0;
    const after = bytes <= ignoredBytes ? 0 : bytes;
    if (before === after) return;
    const changed = account ?? { bytes: 0, receivers: new Map<MessageReceiver, number>() };
    changed.bytes += after - before;
    this.#bytes += after - before;
    if (after === 0) changed.receivers.delete(receiver);
    else changed.receivers.set(receiver, after);
    if (changed.receivers.size === 0) this.#accounts.delete(accountId);
    else this.#accounts.set(accountId, changed);
    while (this.#bytes > unfinishedBytesMax) this.#refuseLargest();
  }

  #refuseLargest(): void {
    const { receivers } = [...this.#accounts.values()].reduce((most, each) =>
      each.bytes > most.bytes ? each : most,
    );
    const [largest] = [...receivers].reduce((most, each) => (each[1] > most[1] ? each : most));
    this.note(largest, 0);
    largest.refuseMessage();
  }
}
