import { Cookies } from "./cookies.ts";
import { ednsAnswer, ednsLength, writeEdns, type EdnsAnswer } from "./edns.ts";
import type { ResponseRateLimit } from "./rate-limit.ts";
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
import { nameKey, type NameKey } from "./wire/name.ts";
import { readQuery, type Query } from "./wire/query.ts";
import { noSections, type Answer } from "./zone/answer.ts";
import { compose, TooLarge } from "./zone/composer.ts";
import { Awaited } from "./zone/flattening.ts";
import type { Lookup } from "./zone/lookup.ts";
import type { NameSpace } from "./zone/name-space.ts";
import { Overloaded } from "./zone/signer.ts";
import type { ServedZone } from "./zone/zone.ts";

export interface Client {
  /** IPv4 or IPv6, without a scope. */
  address: string;
  isTcp: boolean;
}

export interface ResponderOptions {
  space: NameSpace;
  lookup: Lookup;
  rateLimit: ResponseRateLimit;
  /** 16 bytes. */
  cookieSecret: Buffer;
  /** Told to who asks which server this is. */
  identity: string;
}

const nothing: Pick<
  Answer,
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
const notByDatagram = fail(rcodes.refused, extendedErrors.notSupported);

/** Types that are no data: of the protocol itself, or transfers (RFC 6895 §3.1). */
const isMeta = (type: number): boolean =>
  type === types.OPT || (type >= 128 && type <= 255 && type !== types.ANY);
const identityNames = new Set<NameKey>([nameKey("id.server"), nameKey("hostname.bind")]);

/** Answers messages: a packet in, a packet out. */
export class Responder {
  readonly #space: NameSpace;
  readonly #lookup: Lookup;
  readonly #rateLimit: ResponseRateLimit;
  readonly #cookies: Cookies;
  readonly #nsid: Buffer;

  constructor({ space, lookup, rateLimit, cookieSecret, identity }: ResponderOptions) {
    this.#space = space;
    this.#lookup = lookup;
    this.#rateLimit = rateLimit;
    this.#cookies = new Cookies(cookieSecret);
    this.#nsid = Buffer.from(identity);
  }

  /**
   * The answer to the message in the first `length` bytes of `message`; undefined when there is none to give. What is
   * awaited is to be known before the message is given again.
   */
  respond(message: Buffer, length: number, client: Client): Buffer | Awaited | undefined {
    const query = readQuery(message, length);
    if (query === undefined) return undefined;
    return this.respondTo(query, message, client);
  }

  respondTo(query: Query, message: Buffer, client: Client): Buffer | Awaited | undefined {
    const nowMs = Date.now();
    try {
      const zone = this.#zoneOf(query);
      const reply = this.#reply(query, zone, nowMs);
      if (reply instanceof Awaited) return reply;
      return this.#send(query, reply, zone, message, client, nowMs);
    } catch (error) {
      if (error instanceof Overloaded) return undefined;
      if (error instanceof TooLarge)
        return this.#send(query, serverFailure, undefined, message, client, nowMs);
      throw error;
    }
  }

  /** The answer that says that a name could not be looked up in time. */
  giveUp(message: Buffer, length: number, client: Client): Buffer | undefined {
    const query = readQuery(message, length);
    const reply = fail(rcodes.serverFailure, extendedErrors.noReachableAuthority);
    return query && this.#send(query, reply, undefined, message, client, Date.now());
  }

  #zoneOf({ name, type, fault }: Query): ServedZone | undefined {
    if (name === "" || fault !== rcodes.noError) return undefined;
    return type === types.DS ? this.#space.findParent(name) : this.#space.find(name);
  }

  #reply(query: Query, zone: ServedZone | undefined, nowMs: number): Reply | Answer | Awaited {
    const { name, type, edns } = query;
    if (query.opcode !== opcodes.query) return query.opcode === opcodes.notify ? refused : notImplemented;
    if (query.fault !== rcodes.noError) return formatError;
    if (edns !== undefined && edns.version > 0) return badVersion;
    if (query.class === classes.CH) return this.#chaos(query);
    if (query.class !== classes.IN) return refused;
    if (isMeta(type)) {
      if (type === types.AXFR || type === types.IXFR) return notByDatagram;
      return type === types.NXNAME ? noQuestionType : formatError;
    }
    if (zone === undefined) return notOurs;
    const isSigned = zone.signer !== undefined && edns !== undefined && (edns.flags & ednsFlags.do) !== 0;
    const isCompactOk = isSigned && (edns.flags & ednsFlags.co) !== 0;
    return this.#lookup.answer(zone, { name, type, isSigned, isCompactOk }, nowMs);
  }

  /** Which server this is (RFC 4892); its version is nobody's business. */
  #chaos({ name, type }: Query): Reply {
    if (!identityNames.has(name) || (type !== types.TXT && type !== types.ANY)) return refused;
    const rdata = new ByteWriter().characters(this.#nsid.toString("latin1")).done();
    const set = { type: types.TXT, ttl: 0, rdatas: [rdata] };
    const composed = compose({ ...noSections(), answer: [{ owner: name, set }] }, name, true);
    composed.body.writeUInt16BE(classes.CH, 4);
    return { ...nothing, ...composed, rcode: rcodes.noError };
  }

  #send(
    query: Query,
    reply: Reply,
    zone: ServedZone | undefined,
    message: Buffer,
    client: Client,
    nowMs: number,
  ): Buffer | undefined {
    const { edns } = query;
    let opt: EdnsAnswer | undefined;
    let hasCookie = false;
    if (edns !== undefined) {
      opt = ednsAnswer(edns, this.#nsid, reply.rcode);
      opt.extendedError = reply.extendedError;
      if (edns.cookie !== undefined) {
        const { isValid, answer } = this.#cookies.check(edns.cookie, client.address, nowMs);
        opt.cookie = answer;
        hasCookie = isValid;
      }
    }
    if (client.isTcp || hasCookie) return write(query, reply, opt, message, client.isTcp, false);
    const verdict = this.#rateLimit.check(client.address, kindOf(query, reply, zone), nowMs);
    if (verdict === "answer") return write(query, reply, opt, message, false, false);
    if (verdict === "drop") return undefined;
    if (opt?.cookie === undefined) return write(query, reply, opt, message, false, true);
    // A client that is real comes back with the cookie (RFC 7873 §5.2.3), and is then not limited.
    opt.extendedRcode = rcodes.badCookie >> 4;
    return write(query, fail(rcodes.badCookie), opt, message, false, false);
  }
}

/** The class of an answer for rate limiting: like answers are what a flood is made of. */
function kindOf(query: Query, reply: Reply, zone: ServedZone | undefined): string {
  if (reply.answers > 0) return `${query.type} ${query.name}`;
  return `${reply.rcode} ${zone?.facts.id ?? ""}`;
}

function write(
  query: Query,
  reply: Reply,
  opt: EdnsAnswer | undefined,
  message: Buffer,
  isTcp: boolean,
  isShort: boolean,
): Buffer {
  const { questionEnd } = query;
  const optLength = opt === undefined ? 0 : ednsLength(opt);
  const limit = isTcp ? messageBytesMax : datagramLimit(query);
  const whole = questionEnd + reply.body.length + optLength;
  const isTruncated = isShort || whole > limit;
  const { rcode, isAuthoritative, answers, authorities, additionals, body, suffix } = reply;
  const out = Buffer.allocUnsafe(isTruncated ? questionEnd + optLength : whole);
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
  if (opt !== undefined) writeEdns(opt, out, out.length - optLength);
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
