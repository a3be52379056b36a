import { randomInt } from "node:crypto";
import type { Logger } from "pino";
import { exchangeDatagram } from "../name-server/transport/client.ts";
import { ByteWriter } from "../name-server/wire/byte-writer.ts";
import { classes, flags, opcodes, types } from "../name-server/wire/constants.ts";
import { noSections } from "../name-server/zone/answer.ts";
import { compose } from "../name-server/zone/composer.ts";
import type { ServedZone } from "../name-server/zone/zone.ts";
import type { OutgoingTransfers } from "./outgoing.ts";
import { soaEntry } from "./record.ts";
import { signRequest } from "./tsig.ts";
import { unawaited } from "../../platform/util/uncaught.ts";
import { clock } from "../../platform/timers/clock.ts";

type Addressee = ReturnType<OutgoingTransfers["peersToNotify"]>[number];

/** Pauses between attempts (RFC 1996 §3.6). An unreachable peer checks the zone itself when it is back. */
const pausesMs = [1000, 2000, 4000, 8000, 16_000];

/** Notifies peers of changed zones (NOTIFY, RFC 1996). */
export class Notifier {
  readonly #transfers: OutgoingTransfers;
  readonly #zoneOf: (zoneId: string) => ServedZone | undefined;
  readonly #logger: Pick<Logger, "warn">;
  /** Notifications in progress. The value is true if the zone has changed again since. */
  readonly #inFlight = new Map<string, boolean>();
  readonly #closing = new AbortController();

  constructor(
    transfers: OutgoingTransfers,
    zoneOf: (zoneId: string) => ServedZone | undefined,
    logger: Pick<Logger, "warn">,
  ) {
    this.#transfers = transfers;
    this.#zoneOf = zoneOf;
    this.#logger = logger;
  }

  notify(zoneId: string): void {
    for (const peer of this.#transfers.peersToNotify(zoneId)) {
      const key = `${zoneId} ${peer.address} ${peer.port}`;
      if (this.#inFlight.has(key)) this.#inFlight.set(key, true);
      else unawaited(this.#notifyPeer(key, zoneId, peer));
    }
  }

  close(): void {
    this.#closing.abort();
  }

  async #notifyPeer(key: string, zoneId: string, peer: Addressee): Promise<void> {
    do {
      this.#inFlight.set(key, false);
      const isAcknowledged = await this.#attempt(zoneId, peer);
      if (isAcknowledged) this.#transfers.noteNotified(zoneId);
      else if (!this.#closing.signal.aborted && this.#zoneOf(zoneId) !== undefined)
        this.#logger.warn({ zone: zoneId, peer: peer.address }, "a peer did not answer a notification");
    } while (this.#inFlight.get(key) === true && !this.#closing.signal.aborted);
    this.#inFlight.delete(key);
  }

  async #attempt(zoneId: string, peer: Addressee): Promise<boolean> {
    for (const pauseMs of pausesMs) {
      const zone = this.#zoneOf(zoneId);
      if (zone === undefined || this.#closing.signal.aborted) return false;
      const message = notification(zone);
      const signed =
        peer.key === undefined ? message : signRequest(message, peer.key, Math.floor(clock.now() / 1000));
      try {
        await exchangeDatagram(peer, signed);
        return true;
      } catch {
        await pause(pauseMs, this.#closing.signal);
      }
    }
    return false;
  }
}

function notification(zone: ServedZone): Buffer {
  const { body } = compose({ ...noSections(), answer: [soaEntry(zone)] }, zone.key, false);
  return new ByteWriter()
    .uint16(randomInt(65_536))
    .uint16((opcodes.notify << 11) | flags.aa)
    .uint16(1)
    .uint16(1)
    .uint32(0)
    .latin1(zone.key)
    .uint16(types.SOA)
    .uint16(classes.IN)
    .bytes(body)
    .done();
}

/** Waits, or returns early if the signal aborts. The timer does not keep the process alive. */
const pause = (timeMs: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, timeMs);
    timer.unref();
    signal.addEventListener(
      "abort",
      () => {
        clearTimeout(timer);
        resolve();
      },
      { once: true },
    );
  });
