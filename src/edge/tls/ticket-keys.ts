import { randomBytes } from "node:crypto";
import type { Logger } from "pino";
import type { Storage } from "../../platform/storage/storage.ts";
import { clock } from "../../platform/timers/clock.ts";
import { unawaited } from "../../platform/util/uncaught.ts";
import { findTicketKeys, replaceTicketKeys, ticketKeysKey, type StoredTicketKeys } from "./store-tickets.ts";

/** Length that Node expects. */
const keyBytes = 48;
const lifeMs = 12 * 3_600_000;
const checkMs = 60_000;

/**
 * The keys that encrypt session tickets (RFC 8446, 4.6.1), with which visitors resume TLS sessions. All
 * processes and nodes share them, and they are replaced every 12 hours: a stolen key opens no older sessions.
 */
export class TicketKeys {
  readonly #storage: Storage;
  #stored: StoredTicketKeys | undefined;
  readonly #listeners: ((keys: Buffer) => void)[] = [];

  constructor(storage: Storage) {
    this.#storage = storage;
    storage.onChange(
      async (changes) => {
        if (changes.some(({ kind }) => kind === ticketKeysKey)) await this.load();
      },
      async () => {
        const stored = await findTicketKeys(storage.read);
        return () => this.#set(stored);
      },
    );
  }

  /** Undefined before the first keys are made. */
  get current(): Buffer | undefined {
    return this.#stored && Buffer.from(this.#stored.keys, "base64");
  }

  /** Calls back with new keys. */
  onChange(listener: (keys: Buffer) => void): void {
    this.#listeners.push(listener);
  }

  async load(): Promise<void> {
    this.#set(await findTicketKeys(this.#storage.read));
  }

  /** Makes new keys if there are none or they are old. Of several nodes that try, one succeeds. */
  async renew(): Promise<void> {
    const nowMs = clock.now();
    const old = await findTicketKeys(this.#storage.read);
    if (old !== undefined && Math.abs(nowMs - old.madeOn) < lifeMs) return;
    const next = { keys: randomBytes(keyBytes).toString("base64"), madeOn: nowMs };
    await this.#storage.write(async (trx, changed) => {
      await replaceTicketKeys(trx, old, next);
      changed({ kind: ticketKeysKey, id: ticketKeysKey });
    });
  }

  /** Replaces the keys whenever they are old. Returns the function that stops this. */
  keepNew(logger: Logger): () => void {
    const timer = setInterval(() => {
      unawaited(
        this.renew().catch((error: unknown) =>
          logger.warn(
            { err: error },
            "the keys of TLS sessions could not be replaced; the old keys stay in use",
          ),
        ),
      );
    }, checkMs).unref();
    return () => clearInterval(timer);
  }

  #set(stored: StoredTicketKeys | undefined): void {
    const isNew = stored !== undefined && stored.keys !== this.#stored?.keys;
    this.#stored = stored;
    if (isNew) for (const listener of this.#listeners) listener(this.current!);
  }
}
