import { ednsOptions, flags, headerBytes, opcodes, rcodes, types } from "./constants.ts";
import { endOfName, type NameKey } from "./name.ts";

export interface Edns {
  /** Maximum size of a datagram that the client accepts. */
  payloadBytes: number;
  version: number;
  /** The flags of the OPT record, including DO and CO. */
  flags: number;
  wantsNsid: boolean;
  cookie: Buffer | undefined;
}

/** A client's query, as far as it could be parsed. */
export interface Query {
  id: number;
  flags: number;
  opcode: number;
  /** Offset of the question's end, or of the header's end if no question can be copied to the response. */
  questionEnd: number;
  name: NameKey;
  type: number;
  class: number;
  edns: Edns | undefined;
  /** Offset of the TSIG record, or -1. */
  tsigAt: number;
  /** Offset of the authority section, which has the client's SOA in IXFR. */
  authorityAt: number;
  /** noError, or the code for a message that cannot be answered. */
  fault: number;
}

const lower = Buffer.alloc(256);

/** Without the bounds checks of Buffer, because callers ensure that the bytes exist. */
const uint16 = (message: Buffer, at: number): number => (message[at]! << 8) | message[at + 1]!;

/** The name from `at` to `end`, in lower case. Length bytes are below 64, so they are never letters. */
export function lowerName(message: Buffer, at: number, end: number): NameKey {
  const length = end - at;
  for (let index = 0; index < length; index++) {
    const byte = message[at + index]!;
    lower[index] = byte >= 0x41 && byte <= 0x5a ? byte | 0x20 : byte;
  }
  return lower.toString("latin1", 0, length);
}

/**
 * Parses a query. Undefined if it gets no response: it is too short, or is itself a response (answering these
 * could start an endless exchange).
 */
export function readQuery(message: Buffer, end: number): Query | undefined {
  if (end < headerBytes) return undefined;
  const word = (message[2]! << 8) | message[3]!;
  if ((word & flags.qr) !== 0) return undefined;
  const query: Query = {
    id: (message[0]! << 8) | message[1]!,
    flags: word,
    opcode: (word >> 11) & 15,
    questionEnd: headerBytes,
    name: "",
    type: 0,
    class: 0,
    edns: undefined,
    tsigAt: -1,
    authorityAt: headerBytes,
    fault: rcodes.noError,
  };
  if (query.opcode === opcodes.query || query.opcode === opcodes.notify) {
    query.fault = readSections(message, end, query);
  }
  return query;
}

function readSections(message: Buffer, end: number, query: Query): number {
  if (uint16(message, 4) !== 1) return rcodes.formatError;
  const nameEnd = endOfName(message, headerBytes, end);
  if (nameEnd < 0 || nameEnd + 4 > end) return rcodes.formatError;
  query.name = lowerName(message, headerBytes, nameEnd);
  query.type = (message[nameEnd]! << 8) | message[nameEnd + 1]!;
  query.class = (message[nameEnd + 2]! << 8) | message[nameEnd + 3]!;
  query.questionEnd = nameEnd + 4;
  query.authorityAt = query.questionEnd;

  const answers = uint16(message, 6);
  const authorities = uint16(message, 8);
  const additionals = uint16(message, 10);
  if (query.opcode === opcodes.query && (answers > 0 || (authorities > 0 && query.type !== types.IXFR)))
    return rcodes.formatError;
  let at = query.questionEnd;
  for (let left = answers + authorities; left > 0; left--) {
    at = endOfRecord(message, at, end);
    if (at < 0) return rcodes.formatError;
  }
  for (let left = additionals; left > 0; left--) {
    const next = endOfRecord(message, at, end);
    if (next < 0) return rcodes.formatError;
    const fault = readAdditional(message, at, next, left === 1, query);
    if (fault !== rcodes.noError) return fault;
    at = next;
  }
  return at === end ? rcodes.noError : rcodes.formatError;
}

/** The end of the record at `at`, or -1 if it is malformed. Its owner may be compressed. */
export function endOfRecord(message: Buffer, at: number, end: number): number {
  const nameEnd = endOfOwner(message, at, end);
  if (nameEnd < 0 || nameEnd + 10 > end) return -1;
  const next = nameEnd + 10 + uint16(message, nameEnd + 8);
  return next > end ? -1 : next;
}

/** The end of the name at `at`, which may be compressed, or -1 if it is malformed. */
export function endOfOwner(message: Buffer, at: number, end: number): number {
  let position = at;
  while (position < end) {
    const length = message[position]!;
    if (length >= 0xc0) return position + 2;
    if (length > 63 || position - at > 255) return -1;
    position += 1 + length;
    if (length === 0) return position;
  }
  return -1;
}

function readAdditional(message: Buffer, at: number, end: number, isLast: boolean, query: Query): number {
  const owner = endOfOwner(message, at, end);
  const type = uint16(message, owner);
  if (type === types.TSIG) {
    if (!isLast) return rcodes.formatError; // RFC 8945 §5.1
    query.tsigAt = at;
    return rcodes.noError;
  }
  if (type !== types.OPT) return rcodes.noError;
  if (owner !== at + 1 || query.edns !== undefined) return rcodes.formatError; // RFC 6891 §6.1.1
  query.edns = {
    payloadBytes: uint16(message, owner + 2),
    version: message[owner + 5]!,
    flags: uint16(message, owner + 6),
    wantsNsid: false,
    cookie: undefined,
  };
  return readOptions(message, owner + 10, end, query.edns);
}

function readOptions(message: Buffer, from: number, end: number, edns: Edns): number {
  let at = from;
  while (at < end) {
    if (at + 4 > end) return rcodes.formatError;
    const code = uint16(message, at);
    const length = uint16(message, at + 2);
    const value = at + 4;
    at = value + length;
    if (at > end) return rcodes.formatError;
    if (code === ednsOptions.nsid) edns.wantsNsid = true;
    if (code === ednsOptions.cookie && edns.cookie === undefined) {
      // RFC 7873 §5.2.2: 8 bytes of the client, then 0 or 8 to 32 bytes of the server
      if (length !== 8 && (length < 16 || length > 40)) return rcodes.formatError;
      edns.cookie = Buffer.from(message.subarray(value, at));
    }
  }
  return rcodes.noError;
}
