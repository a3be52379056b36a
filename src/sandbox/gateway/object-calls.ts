import type { ObjectEvent } from "../protocol.ts";

interface Expected {
  event: ObjectEvent;
  /** Whether the cell has taken the event. */
  isTaken: boolean;
  end(): void;
  timer: NodeJS.Timeout;
}

/** Time in which a caller must use the token of a call. */
const takeMs = 30_000;

/** The method calls that a cell of objects expects, by token. A token serves once. */
export class ObjectCalls {
  readonly #calls = new Map<string, Expected>();

  /** `end` is called when the call has ended, or if its token is not used in time. */
  expect(event: ObjectEvent, end: () => void): void {
    const timer = setTimeout(() => this.#expire(event.run), takeMs).unref();
    this.#calls.set(event.run, { event, isTaken: false, end, timer });
  }

  /** The event of a token, once. */
  take(token: string): ObjectEvent | undefined {
    const call = this.#calls.get(token);
    if (call === undefined || call.isTaken) return undefined;
    call.isTaken = true;
    return call.event;
  }

  end(token: string): void {
    const call = this.#calls.get(token);
    if (call === undefined) return;
    clearTimeout(call.timer);
    this.#calls.delete(token);
    call.end();
  }

  /** Ends all calls: the cell has ended. */
  close(): void {
    for (const token of [...this.#calls.keys()]) this.end(token);
  }

  #expire(token: string): void {
    if (this.#calls.get(token)?.isTaken === false) this.end(token);
  }
}
