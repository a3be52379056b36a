import { createHash } from "node:crypto";
import type { Duplex } from "node:stream";

/** Properties of a visitor's TLS ClientHello. */
export interface ClientHello {
  /** Bytes of the message without the record header. */
  length: number;
  random: Buffer;
  ciphersSha1: string;
  extensionsSha1: string;
  extensionsSha1Le: string;
  ja3: string;
  ja4: string;
}

interface Parts {
  version: number;
  random: Buffer;
  ciphers: number[];
  extensions: { type: number; data: Buffer }[];
}

const recordHeaderBytes = 5;
const recordBytesMax = 16_384;
const handshake = 22;
const clientHello = 1;
const extension = {
  serverName: 0,
  groups: 10,
  pointFormats: 11,
  signatures: 13,
  alpn: 16,
  versions: 43,
} as const;

/**
 * Length of a visitor's first record from its header; undefined while more bytes are needed, 0 when it is not
 * TLS.
 */
export function helloRecordBytes(start: Buffer): number | undefined {
  if (start.length > 0 && start[0] !== handshake) return 0;
  if (start.length < recordHeaderBytes) return undefined;
  const length = start.readUInt16BE(3);
  return length > recordBytesMax ? 0 : recordHeaderBytes + length;
}

const key = Symbol("client hello");
type Known = Duplex & { [key]?: { record: Buffer; hello?: ClientHello | undefined } };

/** Keeps the first record of a connection; it is parsed on demand. */
export function rememberHello(socket: Duplex, record: Buffer): void {
  (socket as Known)[key] = { record };
}

/** The first record of a connection; undefined without TLS. */
export const helloRecordOf = (socket: Duplex): Buffer | undefined => (socket as Known)[key]?.record;

/** Undefined for a connection without TLS, or with a fragmented ClientHello. */
export function helloOf(socket: Duplex): ClientHello | undefined {
  const known = (socket as Known)[key];
  if (known === undefined) return undefined;
  if (!("hello" in known)) known.hello = parseHello(known.record);
  return known.hello;
}

export function parseHello(record: Buffer): ClientHello | undefined {
  const message = record.subarray(recordHeaderBytes);
  try {
    if (message[0] !== clientHello || message.readUIntBE(1, 3) + 4 !== message.length) return undefined;
    const parts = read(message.subarray(4));
    const types = parts.extensions.map(({ type }) => type);
    return {
      length: message.length,
      random: parts.random,
      ciphersSha1: sha1(words(parts.ciphers, "BE")),
      extensionsSha1: sha1(words(types, "BE")),
      extensionsSha1Le: sha1(words(types, "LE")),
      ja3: ja3(parts),
      ja4: ja4(parts),
    };
  } catch (error) {
    if (error instanceof RangeError) return undefined; // a length exceeds the message
    throw error;
  }
}

/** RFC 8446, 4.1.2. */
function read(body: Buffer): Parts {
  let at = 34;
  const version = body.readUInt16BE(0);
  const random = Buffer.from(body.subarray(2, at));
  at += 1 + body.readUInt8(at);
  const ciphers = numbers(body.subarray(at + 2, at + 2 + body.readUInt16BE(at)), 2);
  at += 2 + body.readUInt16BE(at);
  at += 1 + body.readUInt8(at);
  const extensions: Parts["extensions"] = [];
  if (at < body.length) {
    const end = at + 2 + body.readUInt16BE(at);
    at += 2;
    while (at < end) {
      const [type, length] = [body.readUInt16BE(at), body.readUInt16BE(at + 2)];
      extensions.push({ type, data: body.subarray(at + 4, at + 4 + length) });
      at += 4 + length;
    }
  }
  return { version, random, ciphers, extensions };
}

function numbers(bytes: Buffer, size: 1 | 2): number[] {
  const all: number[] = [];
  for (let at = 0; at + size <= bytes.length; at += size) all.push(bytes.readUIntBE(at, size));
  return all;
}

/** Random reserved values that clients send so that servers ignore unknown values (RFC 8701). */
const isGrease = (value: number): boolean => (value & 0x0f0f) === 0x0a0a && value >> 8 === (value & 0xff);
const plain = (values: readonly number[]): number[] => values.filter((value) => !isGrease(value));

const dataOf = ({ extensions }: Parts, type: number): Buffer | undefined =>
  extensions.find((each) => each.type === type)?.data;

function ja3(parts: Parts): string {
  const groups = dataOf(parts, extension.groups);
  const formats = dataOf(parts, extension.pointFormats);
  const fields = [
    [parts.version],
    plain(parts.ciphers),
    plain(parts.extensions.map(({ type }) => type)),
    groups === undefined ? [] : plain(numbers(groups.subarray(2), 2)),
    formats === undefined ? [] : numbers(formats.subarray(1), 1),
  ];
  return createHash("md5")
    .update(fields.map((field) => field.join("-")).join(","))
    .digest("hex");
}

const versionNames: Readonly<Record<number, string>> = {
  0x0304: "13",
  0x0303: "12",
  0x0302: "11",
  0x0301: "10",
  0x0300: "s3",
};

/** JA4 for TLS over TCP: independent of the order of extensions. */
function ja4(parts: Parts): string {
  const ciphers = plain(parts.ciphers);
  const types = plain(parts.extensions.map(({ type }) => type));
  const versions = dataOf(parts, extension.versions);
  const version = Math.max(
    ...(versions === undefined ? [parts.version] : plain(numbers(versions.subarray(1), 2))),
  );
  const signatures = dataOf(parts, extension.signatures);
  const first = [
    "t",
    versionNames[version] ?? "00",
    types.includes(extension.serverName) ? "d" : "i",
    twoDigits(ciphers.length),
    twoDigits(types.length),
    alpnEnds(dataOf(parts, extension.alpn)),
  ].join("");
  const sortedTypes = hexes(
    types.filter((type) => type !== extension.serverName && type !== extension.alpn),
  ).sort();
  const offered = [
    sortedTypes.join(","),
    ...(signatures === undefined ? [] : [hexes(plain(numbers(signatures.subarray(2), 2))).join(",")]),
  ];
  return [
    first,
    ciphers.length === 0 ? "000000000000" : short(hexes(ciphers).sort().join(",")),
    types.length === 0 ? "000000000000" : short(offered.join("_")),
  ].join("_");
}

/** First and last character of the first ALPN protocol; in hexadecimal when they are not alphanumeric. */
function alpnEnds(alpn: Buffer | undefined): string {
  if (alpn === undefined || alpn.length < 4) return "00";
  const name = alpn.subarray(3, 3 + alpn.readUInt8(2)).toString("latin1");
  const ends = name.charAt(0) + name.charAt(name.length - 1);
  if (/^[a-z0-9]{2}$/i.test(ends)) return ends;
  const hex = Buffer.from(name, "latin1").toString("hex");
  return hex.charAt(0) + hex.charAt(hex.length - 1);
}

const twoDigits = (count: number): string => String(Math.min(count, 99)).padStart(2, "0");
const hexes = (values: readonly number[]): string[] =>
  values.map((value) => value.toString(16).padStart(4, "0"));
const short = (text: string): string => createHash("sha256").update(text).digest("hex").slice(0, 12);
const sha1 = (bytes: Buffer): string => createHash("sha1").update(bytes).digest("base64");

function words(values: readonly number[], order: "BE" | "LE"): Buffer {
  const bytes = Buffer.alloc(values.length * 2);
  for (const [index, value] of values.entries())
    if (order === "BE") bytes.writeUInt16BE(value, index * 2);
    else bytes.writeUInt16LE(value, index * 2);
  return bytes;
}
