import { CellFault, ObjectRefusal } from "../errors.ts";
import { tooManyQueuedText } from "../protocol.ts";

export const messages = {
  fault: "ended a cell of objects after a fault",
  held: "ended a cell of objects whose answers may not be used",
};

/* The public texts of errors of Durable Objects. */
export const tooManyQueued = (): ObjectRefusal => new ObjectRefusal(tooManyQueuedText, "overloaded");

export const queuedTooLong = (): ObjectRefusal =>
  new ObjectRefusal("Durable Object is overloaded. Requests queued for too long.", "overloaded");

/** No process can have the object now. It may be called again: thrown only before anything was done. */
export const overloadedCells = (): ObjectRefusal =>
  new ObjectRefusal("Cannot resolve Durable Object due to transient issue on remote node.", "retryable");

/** The error for a request that was in progress when the object's cell ended. */
export function objectFault({ kind, mayBeCulprit }: CellFault): ObjectRefusal {
  if (mayBeCulprit && kind === "cpu")
    return new ObjectRefusal("Durable Object exceeded its CPU time limit and was reset.");
  if (mayBeCulprit && kind === "memory")
    return new ObjectRefusal("Durable Object's isolate exceeded its memory limit and was reset.");
  return connectionLost();
}

/** The connection to an object has broken. The object may have done what was asked. */
export const connectionLost = (): ObjectRefusal => new ObjectRefusal("Network connection lost.", "retryable");

const brokenCodes: ReadonlySet<unknown> = new Set(["ECONNRESET", "EPIPE", "UND_ERR_SOCKET"]);

/** The error for a request that a cell did not answer: it has ended, or only the connection with it has. */
export function runFailure(error: unknown): unknown {
  if (error instanceof CellFault) return objectFault(error);
  return brokenCodes.has((error as { code?: unknown }).code) ? connectionLost() : error;
}

/** Events without a fault after which a namespace may share a cell again. */
const eventsToTrust = 100;

/** Namespaces that may have ended a cell. Each of them then runs in a cell of its own. */
export class NamespaceQuarantine {
  /** Events since the last fault, by namespace. */
  readonly #goodEvents = new Map<string, number>();

  has(namespace: string): boolean {
    return this.#goodEvents.has(namespace);
  }

  add(namespaces: Iterable<string>): void {
    for (const namespace of namespaces) this.#goodEvents.set(namespace, 0);
  }

  recordSuccess(namespace: string): void {
    const good = this.#goodEvents.get(namespace);
    if (good === undefined) return;
    if (good + 1 >= eventsToTrust) this.#goodEvents.delete(namespace);
    else this.#goodEvents.set(namespace, good + 1);
  }
}
