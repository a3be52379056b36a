import { ObjectRefusal, type CellFault } from "../errors.ts";
import { tooManyQueuedText } from "../protocol.ts";

export const faultMessage = "ended a cell of objects after a fault";
export const heldMessage = "ended a cell of objects whose answers may not be used";

/* The public texts of errors of Durable Objects. */
export const tooManyQueued = (): ObjectRefusal => new ObjectRefusal(tooManyQueuedText, "overloaded");

export const queuedTooLong = (): ObjectRefusal =>
  new ObjectRefusal("Durable Object is overloaded. Requests queued for too long.", "overloaded");

/** No process can have the object now. It may be called again. */
export const overloadedCells = (): ObjectRefusal =>
  new ObjectRefusal("Cannot resolve Durable Object due to transient issue on remote node.", "retryable");

/** The error for a request that was in progress when the object's cell ended. */
export function objectFault({ kind, isSuspect }: CellFault): ObjectRefusal {
  if (isSuspect && kind === "cpu")
    return new ObjectRefusal("Durable Object exceeded its CPU time limit and was reset.");
  if (isSuspect && kind === "memory")
    return new ObjectRefusal("Durable Object's isolate exceeded its memory limit and was reset.");
  return new ObjectRefusal("Network connection lost.", "retryable");
}

/** Events without a fault after which a namespace may share a cell again. */
const eventsToTrust = 100;

/** Namespaces that may have ended a cell. Each of them then runs in a cell of its own. */
export class Faults {
  /** Events since the last fault, by namespace. */
  readonly #suspects = new Map<string, number>();

  isSuspect(namespace: string): boolean {
    return this.#suspects.has(namespace);
  }

  record(namespaces: Iterable<string>): void {
    for (const namespace of namespaces) this.#suspects.set(namespace, 0);
  }

  recordSuccess(namespace: string): void {
    const good = this.#suspects.get(namespace);
    if (good === undefined) return;
    if (good + 1 >= eventsToTrust) this.#suspects.delete(namespace);
    else this.#suspects.set(namespace, good + 1);
  }
}
