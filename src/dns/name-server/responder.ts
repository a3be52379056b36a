import { noAnswers, type AnswerCounts } from "./answer-counts.ts";
import { Cookies } from "./cookies.ts";
import { ednsAnswer, ednsLength, writeEdns, type EdnsAnswer } from "./edns.ts";
import type { ResponseRateLimit } from "./rate-limit.ts";
import type { TransferAccess } from "../transfers/access.ts";
import { verifyTsig, type AnswerSigner, type TransferKey } from "../transfers/tsig.ts";
import { ByteWriter } from "./wire/byte-writer.ts";
import {
  classes,
  ednsFlags,
  extendedErrors,
  flags,
  headerBytes,
  messageBytesMax,
  opcodes,
  rcodes,
  types,
  udpBytesMax,
  udpBytesWithoutEdns,
} from "./wire/constants.ts";
import type { QueryLog } from "./query-log.ts";
import { nameKey, showName, type NameKey } from "./wire/name.ts";
import { readQuery, type Query } from "./wire/query.ts";
import { noSections, type DnsAnswer } from "./zone/answer.ts";
import { compose, TooLarge } from "./zone/composer.ts";
import { Awaited } from "./zone/flattening.ts";
import { questionKind, type Lookup } from "./zone/lookup.ts";
import type { NameSpace } from "./zone/name-space.ts";
import { Overloaded } from "./zone/signer.ts";
import type { ServedZone } from "./zone/zone.ts";
import { clock } from "../../platform/timers/clock.ts";

export interface DnsClient {
  /** IPv4 or IPv6, without a scope. */
  address: string;
  isTcp: boolean;
  /** When the message was received, if the listener read the clock once for a batch. */
  takenMs?: number;
  /** A buffer for the response, which saves a copy. `outBytes` is then the response's length. */
  out?: Buffer;
  outBytes?: number;
}

export interface ResponderOptions {
  space: NameSpace;
  lookup: Lookup;
  rateLimit: ResponseRateLimit;
  access: TransferAccess;
  /** 16 bytes. */
  cookieSecret: Buffer;
  /** The server's identity, for id.server queries (RFC 4892) and NSID. */
  identity: string;
  queryLog: QueryLog;
}

/** A query with everything that its response depends on. */
interface QueryContext {
  query: Query;
  message: Buffer;
  client: DnsClient;
  nowMs: number;
  /** The TSIG key of the query, and the signer of the response. */
  key: TransferKey | undefined;
  signer: AnswerSigner | undefined;
  /** The zone of the name, once it has been looked up. */
  zone: ServedZone | undefined;
}

const nothing: Pick<
  DnsAnswer,
  "body" | "answers" | "authorities" | "additionals" | "isAuthoritative" | "suffix" | "extendedError"
> = {
  body: Buffer.alloc(0),
  answers: 0,
  authorities: 0,
  additionals: 0,
  isAuthoritative: false,
  suffix: undefined,
  extendedError: undefined,
};
type Reply = typeof nothing & { rcode: number };

const fail = (rcode: number, extendedError?: number): Reply => ({ ...nothing, rcode, extendedError });
const formatError = fail(rcodes.formatError);
const refused = fail(rcodes.refused);
const notImplemented = fail(rcodes.notImplemented);
const serverFailure = fail(rcodes.serverFailure);
const badVersion = fail(rcodes.badVersion);
const notOurs = fail(rcodes.refused, extendedErrors.notAuthoritative);
const noQuestionType = fail(rcodes.formatError, extendedErrors.invalidQueryType);
const notAuth = fail(rcodes.notAuth);
const notByDatagram = fail(rcodes.refused, extendedErrors.notSupported);

/** Types that are not data: meta types and transfers (RFC 6895 §3.1). */
const isMeta = (type: number): boolean =>
  type === types.OPT || (type >= 128 && type <= 255 && type !== types.ANY);
const identityNames = new Set<NameKey>([nameKey("id.server"), nameKey("hostname.bind")]);

/** Answers DNS messages, independent of the transport. */
export class Responder {
  readonly counts: AnswerCounts = noAnswers();
  readonly #space: NameSpace;
  readonly #lookup: Lookup;
  readonly #rateLimit: ResponseRateLimit;
  readonly #access: TransferAccess;
  readonly #cookies: Cookies;
  readonly #nsid: Buffer;
  readonly #queryLog: QueryLog;

  constructor({ space, lookup, rateLimit, access, cookieSecret, identity, queryLog }: ResponderOptions) {
    this.#queryLog = queryLog;
    this.#space = space;
    this.#lookup = lookup;
    this.#rateLimit = rateLimit;
    this.#access = access;
    this.#cookies = new Cookies(cookieSecret);
    this.#nsid = Buffer.from(identity);
  }

  /**
   * The response to the first `length` bytes of `message`; undefined to stay silent. Awaited means that an
   * external name must be looked up first: call again afterwards.
   */
  respond(message: Buffer, length: number, client: DnsClient): Buffer | Awaited | undefined {
    const context = this.#context(message, length, client);
    if (context === undefined) return undefined;
    try {
      const reply = this.#reply(context);
      return reply instanceof Awaited ? reply : this.#send(context, reply);
    } catch (error) {
      if (error instanceof Overloaded) {
        this.counts.withheld++;
        return undefined;
      }
      if (error instanceof TooLarge) return this.#send(context, serverFailure);
      throw error;
    }
  }

  /** The SERVFAIL response for a name that could not be looked up in time. */
  giveUp(message: Buffer, length: number, client: DnsClient): Buffer | undefined {
    const context = this.#context(message, length, client);
    const reply = fail(rcodes.serverFailure, extendedErrors.noReachableAuthority);
    return context && this.#send(context, reply);
  }

  #context(message: Buffer, length: number, client: DnsClient): QueryContext | undefined {
    const query = readQuery(message, length);
    if (query === undefined) return undefined;
    const context: QueryContext = {
      query,
      message,
      client,
      nowMs: client.takenMs ?? clock.now(),
      key: undefined,
      signer: undefined,
      zone: undefined,
    };
    if (query.tsigAt >= 0 && query.fault === rcodes.noError) this.#verify(context, length);
    return context;
  }

  #verify(context: QueryContext, length: number): void {
    const { query, message, nowMs } = context;
    const keysNamed = (name: NameKey): readonly TransferKey[] => this.#access.keysNamed(name);
    const check = verifyTsig(message, query.tsigAt, length, keysNamed, Math.floor(nowMs / 1000));
    if (check === undefined) query.fault = rcodes.formatError;
    else ({ key: context.key, signer: context.signer } = check);
  }

  #reply(context: QueryContext): Reply | DnsAnswer | Awaited {
    const { query, nowMs, key, signer } = context;
    const { name, type, edns } = query;
    if (query.opcode !== opcodes.query) return query.opcode === opcodes.notify ? refused : notImplemented;
    if (query.fault !== rcodes.noError) return formatError;
    if (signer !== undefined && key === undefined) return notAuth;
    if (edns !== undefined && edns.version > 0) return badVersion;
    if (query.class === classes.CH) return this.#chaos(query);
    if (query.class !== classes.IN) return refused;
    const takesSignatures = edns !== undefined && (edns.flags & ednsFlags.do) !== 0;
    const takesCompact = takesSignatures && (edns.flags & ednsFlags.co) !== 0;
    const kind = questionKind(type, takesSignatures, takesCompact);
    const recent = this.#lookup.recent(name, kind, nowMs);
    if (recent !== undefined) return recent;

    const zone = type === types.DS ? this.#space.findParent(name) : this.#space.find(name);
    context.zone = zone;
    if (isMeta(type)) {
      if (type === types.IXFR && zone !== undefined) return this.#newestSerial(context, zone);
      if (type === types.AXFR || type === types.IXFR) return notByDatagram;
      return type === types.NXNAME ? noQuestionType : formatError;
    }
    if (zone === undefined) return notOurs;
    const isSigned = zone.signer !== undefined && takesSignatures;
    return this.#lookup.answer(
      zone,
      { name, type, kind, isSigned, isCompactOk: isSigned && takesCompact },
      nowMs,
    );
  }

  /**
   * Answers IXFR over UDP with the current SOA only, so that the client fetches the difference over TCP (RFC
   * 1995 §2).
   */
  #newestSerial({ query, client, key, nowMs }: QueryContext, zone: ServedZone): Reply | DnsAnswer | Awaited {
    if (zone.key !== query.name) return notAuth;
    if (!this.#access.permits(zone.configuration.id, client.address, key)) return refused;
    const question = {
      name: zone.key,
      type: types.SOA,
      kind: types.SOA,
      isSigned: false,
      isCompactOk: false,
    };
    return this.#lookup.answer(zone, question, nowMs);
  }

  /** Answers id.server (RFC 4892). The version is not disclosed. */
  #chaos({ name, type }: Query): Reply {
    if (!identityNames.has(name) || (type !== types.TXT && type !== types.ANY)) return refused;
    const rdata = new ByteWriter().characters(this.#nsid.toString("latin1")).done();
    const set = { type: types.TXT, ttl: 0, rdatas: [rdata] };
    const composed = compose({ ...noSections(), answer: [{ owner: name, set }] }, name, true);
    composed.body.writeUInt16BE(classes.CH, 4);
    return { ...nothing, ...composed, rcode: rcodes.noError };
  }

  #send(context: QueryContext, reply: Reply): Buffer | undefined {
    const { query, client, nowMs, zone } = context;
    const { edns } = query;
    let opt: EdnsAnswer | undefined;
    let isKnown = client.isTcp || context.key !== undefined;
    if (edns !== undefined) {
      opt = ednsAnswer(edns, this.#nsid, reply.rcode);
      opt.extendedError = reply.extendedError;
      if (edns.cookie !== undefined) {
        const { isValid, answer } = this.#cookies.check(edns.cookie, client.address, nowMs);
        opt.cookie = answer;
        isKnown ||= isValid;
      }
    }
    if (isKnown) return this.#write(context, reply, opt, false);
    const action = this.#rateLimit.isLimited(client.address)
      ? this.#rateLimit.check(client.address, kindOf(query, reply, zone), nowMs)
      : "answer";
    if (action === "answer") return this.#write(context, reply, opt, false);
    if (action === "drop") {
      this.counts.withheld++;
      return undefined;
    }
    if (opt?.cookie === undefined) return this.#write(context, reply, opt, true);
    // A genuine client retries with the cookie (RFC 7873 §5.2.3) and is then not limited.
    opt.extendedRcode = rcodes.badCookie >> 4;
    return this.#write(context, fail(rcodes.badCookie), opt, false);
  }

  #write(context: QueryContext, reply: Reply, opt: EdnsAnswer | undefined, isShort: boolean): Buffer {
    const counts = context.client.isTcp ? this.counts.tcp : this.counts.udp;
    counts[reply.rcode]!++;
    if (this.#queryLog.isOn) this.#log(context, reply.rcode);
    return write(context, reply, opt, isShort);
  }

  #log({ query, client, nowMs, zone }: QueryContext, rcode: number): void {
    if (query.fault !== rcodes.noError || query.opcode !== opcodes.query) return;
    // A cached answer is found without looking up the zone, so the zone may be unknown here.
    const zoneId = (zone ?? this.#space.find(query.name))?.configuration.id;
    if (zoneId === undefined || !this.#queryLog.reads(zoneId)) return;
    const { name, type } = query;
    this.#queryLog.note({
      zoneId,
      name: showName(name),
      type,
      rcode,
      address: client.address,
      timeMs: nowMs,
    });
  }
}

/**
 * The class of a response for rate limiting: type and name for positive answers, code and zone for all
 * others.
 */
function kindOf(query: Query, reply: Reply, zone: ServedZone | undefined): string {
  if (reply.answers > 0) return `${query.type} ${query.name}`;
  return `${reply.rcode} ${zone?.configuration.id ?? ""}`;
}

function write(context: QueryContext, reply: Reply, opt: EdnsAnswer | undefined, isShort: boolean): Buffer {
  const { query, message, client, signer } = context;
  const { questionEnd } = query;
  const optLength = opt === undefined ? 0 : ednsLength(opt);
  const limit = (client.isTcp ? messageBytesMax : datagramLimit(query)) - (signer?.length ?? 0);
  const whole = questionEnd + reply.body.length + optLength;
  const isTruncated = isShort || whole > limit;
  const { rcode, isAuthoritative, answers, authorities, additionals, body, suffix } = reply;
  const bytes = isTruncated ? questionEnd + optLength : whole;
  const out = bufferFor(context, bytes) ?? Buffer.allocUnsafe(bytes);
  const word =
    flags.qr |
    (query.flags & (0x7800 | flags.rd | flags.cd)) |
    (isAuthoritative ? flags.aa : 0) |
    (isTruncated ? flags.tc : 0) |
    (rcode & 15);
  out[0] = message[0]!;
  out[1] = message[1]!;
  out[2] = word >> 8;
  out[3] = word & 255;
  out[4] = 0;
  out[5] = questionEnd > headerBytes ? 1 : 0;
  put16(out, 6, isTruncated ? 0 : answers);
  put16(out, 8, isTruncated ? 0 : authorities);
  put16(out, 10, (isTruncated ? 0 : additionals) + (opt === undefined ? 0 : 1));
  message.copy(out, headerBytes, headerBytes, questionEnd);
  if (!isTruncated) {
    body.copy(out, questionEnd);
    if (suffix !== undefined)
      put16(out, questionEnd, 0xc000 | (headerBytes + query.name.length - suffix.length));
  }
  if (opt !== undefined) writeEdns(opt, out, bytes - optLength);
  return signer === undefined ? out : signer.sign(out);
}

function bufferFor({ client, signer }: QueryContext, bytes: number): Buffer | undefined {
  const { out } = client;
  if (out === undefined || signer !== undefined || bytes > out.length) return undefined;
  client.outBytes = bytes;
  return out;
}

function put16(out: Buffer, at: number, value: number): void {
  out[at] = value >> 8;
  out[at + 1] = value & 255;
}

const datagramLimit = ({ edns }: Query): number =>
  edns === undefined
    ? udpBytesWithoutEdns
    : Math.min(Math.max(edns.payloadBytes, udpBytesWithoutEdns), udpBytesMax);
