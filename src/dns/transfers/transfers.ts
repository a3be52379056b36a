import { setImmediate as nextTurn } from "node:timers/promises";
import type { Connection } from "../name-server/transport/tcp.ts";
import { classes, flags, headerBytes, opcodes, rcodes, types } from "../name-server/wire/constants.ts";
import { endOfOwner, readQuery, type Query } from "../name-server/wire/query.ts";
import { noSections, type AnswerEntry } from "../name-server/zone/answer.ts";
import { compose } from "../name-server/zone/composer.ts";
import { Awaited, type Flattening } from "../name-server/zone/flattening.ts";
import type { Lookup } from "../name-server/zone/lookup.ts";
import type { NameSpace } from "../name-server/zone/name-space.ts";
import type { CnameTarget } from "../name-server/zone/node.ts";
import type { ServedZone } from "../name-server/zone/zone.ts";
import type { TransferAccess } from "./access.ts";
import { isNewer, type Journal } from "./journal.ts";
import { single, soaEntry, transferred } from "./record.ts";
import { verifyTsig, type AnswerSigner, type TransferKey } from "./tsig.ts";
import { clock } from "../../platform/timers/clock.ts";

/** Small enough for compression pointers to reach every name of a message. */
const messageBytes = 15_000;
const inFlightMax = 20;
/** How long a transfer may run before it yields the event loop to queries. */
const turnMs = 5;
const flattenedWaitMs = 4000;

export interface TransfersOptions {
  space: NameSpace;
  lookup: Lookup;
  flattening: Flattening;
  access: TransferAccess;
  journalOf: (zoneId: string) => Journal | undefined;
  onTransfer: (zoneId: string) => void;
}

/** The zone changed during the transfer, so the messages sent are inconsistent. */
class Outdated extends Error {}

/** Serves zone transfers to secondaries: full (AXFR, RFC 5936) and incremental (IXFR, RFC 1995). */
export class ZoneTransfers {
  readonly #options: TransfersOptions;
  #inFlight = 0;

  constructor(options: TransfersOptions) {
    this.#options = options;
  }

  /** Handles a message if it requests a transfer: resolves after the transfer. Returns undefined if it does not. */
  take(message: Buffer, connection: Connection): Promise<void> | undefined {
    const query = readQuery(message, message.length);
    if (query?.opcode !== opcodes.query || query.fault !== rcodes.noError) return undefined;
    if (query.class !== classes.IN || (query.type !== types.AXFR && query.type !== types.IXFR))
      return undefined;
    // Copy the message, because its buffer is reused during the transfer.
    return this.#answer(query, Buffer.from(message), connection).catch((error: unknown) => {
      connection.end();
      if (!(error instanceof Outdated)) throw error;
    });
  }

  async #answer(query: Query, message: Buffer, connection: Connection): Promise<void> {
    const { space, access } = this.#options;
    let key: TransferKey | undefined;
    let signer: AnswerSigner | undefined;
    const refuse = async (rcode: number): Promise<void> => {
      const answer = messageOf(query, message, rcode, []);
      await connection.send(signer === undefined ? answer : signer.sign(answer));
    };
    if (query.tsigAt >= 0) {
      const check = verifyTsig(
        message,
        query.tsigAt,
        message.length,
        (name) => access.keysNamed(name),
        seconds(),
      );
      if (check === undefined) return refuse(rcodes.formatError);
      ({ key, signer } = check);
      if (key === undefined) return refuse(rcodes.notAuth);
    }
    const zone = space.find(query.name);
    if (zone === undefined) return refuse(rcodes.notAuth);
    if (!access.permits(zone.configuration.id, connection.address, key)) return refuse(rcodes.refused);
    if (zone.key !== query.name) return refuse(rcodes.notAuth);
    if (this.#inFlight >= inFlightMax) return refuse(rcodes.serverFailure);
    this.#inFlight++;
    try {
      const sender = new Sender(query, message, connection, signer);
      const isWhole = await this.#send(query, message, zone, sender);
      if (isWhole) this.#options.onTransfer(zone.configuration.id);
    } finally {
      this.#inFlight--;
    }
  }

  /** Sends the zone. Returns whether the client received all of it. */
  async #send(query: Query, message: Buffer, zone: ServedZone, sender: Sender): Promise<boolean> {
    const soa = soaEntry(zone);
    if (query.type === types.IXFR) {
      const known = knownSerial(query, message);
      if (known === undefined) return sender.refuse(rcodes.formatError);
      if (!isNewer(zone.configuration.serial, known)) return sender.end([soa]);
      const differences = this.#options.journalOf(zone.configuration.id)?.since(known);
      if (differences !== undefined) {
        await sender.add([soa]);
        for (const { removed, added } of differences) await sender.add([...removed, ...added]);
        return sender.end([soa]);
      }
    }
    await sender.add([soa]);
    const { version } = zone;
    let turnEndsMs = performance.now() + turnMs;
    // Nodes are immutable, so this list is a snapshot of the zone.
    for (const node of [...zone.nodes()]) {
      if (zone.version !== version) throw new Outdated();
      const { sets, flattened } = transferred(zone, node);
      for (const set of sets) await sender.add(single(node.key, set));
      if (flattened !== undefined) await sender.add(await this.#addresses(zone, node.key, flattened));
      if (performance.now() < turnEndsMs) continue;
      await nextTurn();
      turnEndsMs = performance.now() + turnMs;
    }
    return sender.end([soa]);
  }

  async #addresses(zone: ServedZone, owner: string, target: CnameTarget): Promise<AnswerEntry[]> {
    const entries: AnswerEntry[] = [];
    for (const type of [types.A, types.AAAA]) {
      const deadlineMs = performance.now() + flattenedWaitMs;
      for (;;) {
        const found = this.#options.lookup.addresses(target, type, zone, clock.now());
        if (!(found instanceof Awaited)) {
          if (found !== "failed") entries.push(...single(owner, found));
          break;
        }
        if (!(await this.#known(found, deadlineMs - performance.now()))) break;
      }
    }
    return entries;
  }

  #known({ wanted }: Awaited, waitMs: number): Promise<boolean> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(false), waitMs);
      this.#options.flattening.await(wanted, () => {
        clearTimeout(timer);
        resolve(true);
      });
    });
  }
}

/** Packs records into messages and sends each message when it is full. */
class Sender {
  readonly #query: Query;
  readonly #message: Buffer;
  readonly #connection: Connection;
  readonly #signer: AnswerSigner | undefined;
  #entries: AnswerEntry[] = [];
  #bytes = 0;
  #isLost = false;

  constructor(query: Query, message: Buffer, connection: Connection, signer: AnswerSigner | undefined) {
    this.#query = query;
    this.#message = message;
    this.#connection = connection;
    this.#signer = signer;
  }

  async add(entries: readonly AnswerEntry[]): Promise<void> {
    for (const entry of entries) {
      const bytes = entry.owner.length + 10 + entry.set.rdatas[0]!.length;
      if (this.#entries.length > 0 && this.#bytes + bytes > messageBytes) await this.#flush();
      this.#entries.push(entry);
      this.#bytes += bytes;
    }
  }

  async end(entries: readonly AnswerEntry[]): Promise<boolean> {
    await this.add(entries);
    await this.#flush();
    return !this.#isLost;
  }

  async refuse(rcode: number): Promise<false> {
    await this.#send(messageOf(this.#query, this.#message, rcode, []));
    return false;
  }

  async #flush(): Promise<void> {
    const entries = this.#entries;
    this.#entries = [];
    this.#bytes = 0;
    await this.#send(messageOf(this.#query, this.#message, rcodes.noError, entries));
  }

  async #send(answer: Buffer): Promise<void> {
    if (this.#isLost) return;
    this.#isLost = !(await this.#connection.send(this.#signer?.sign(answer) ?? answer));
  }
}

function messageOf(query: Query, message: Buffer, rcode: number, answer: AnswerEntry[]): Buffer {
  const { answers, body } = compose({ ...noSections(), answer }, query.name, false);
  const head = Buffer.from(message.subarray(0, query.questionEnd));
  const isAuthoritative = rcode === rcodes.noError;
  head.writeUInt16BE(flags.qr | (isAuthoritative ? flags.aa : 0) | rcode, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(answers, 6);
  head.writeUInt32BE(0, 8);
  return Buffer.concat([head, body]);
}

/** The serial of the client's SOA record (RFC 1995 §3). */
function knownSerial({ authorityAt }: Query, message: Buffer): number | undefined {
  if (message.readUInt16BE(8) !== 1) return undefined;
  const owner = endOfOwner(message, authorityAt, message.length);
  if (message.readUInt16BE(owner) !== types.SOA) return undefined;
  const rdata = owner + 10;
  const end = rdata + message.readUInt16BE(owner + 8);
  const serverEnd = endOfOwner(message, rdata, end);
  const numbers = serverEnd < 0 ? -1 : endOfOwner(message, serverEnd, end);
  return numbers < headerBytes || numbers + 20 !== end ? undefined : message.readUInt32BE(numbers);
}

const seconds = (): number => Math.floor(clock.now() / 1000);
