import { types } from "../wire/constants.ts";
import { readName, shownName, typeName } from "./read-name.ts";

/** Reads the value of a record from one field to the next. Names may point into the whole message. */
class Fields {
  readonly #message: Buffer;
  readonly #end: number;
  #at: number;

  constructor(message: Buffer, start: number, end: number) {
    this.#message = message;
    this.#at = start;
    this.#end = end;
  }

  number(bytes: 1 | 2 | 4): number {
    this.#at += bytes;
    return this.#message.readUIntBE(this.#at - bytes, bytes);
  }

  name(): string {
    const { name, end } = readName(this.#message, this.#at);
    this.#at = end;
    return shownName(name);
  }

  /** A string after the byte with its length. */
  string(): Buffer {
    return this.bytes(this.number(1));
  }

  bytes(length = this.#end - this.#at): Buffer {
    this.#at += length;
    return this.#message.subarray(this.#at - length, this.#at);
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#end;
  }
}

/** The text of a record's value in a zone file. Types without a form of their own have that of RFC 3597. */
export function rdataText(type: number, message: Buffer, start: number, end: number): string {
  const form = forms[type];
  if (form === undefined) {
    const bytes = message.subarray(start, end);
    return `\\# ${bytes.length} ${bytes.toString("hex").toUpperCase()}`.trimEnd();
  }
  return form(new Fields(message, start, end));
}

const join = (...parts: (string | number)[]): string => parts.join(" ");
const name = (fields: Fields): string => fields.name();
const hex = (bytes: Buffer): string => bytes.toString("hex").toUpperCase();
const base64 = (bytes: Buffer): string => bytes.toString("base64");

/** A quoted string (RFC 1035, 5.1). */
const quoted = (bytes: Buffer): string =>
  `"${Array.from(bytes, (byte) => {
    if (byte === 0x22 || byte === 0x5c) return `\\${String.fromCharCode(byte)}`;
    return byte < 32 || byte > 126 ? `\\${String(byte).padStart(3, "0")}` : String.fromCharCode(byte);
  }).join("")}"`;

function strings(fields: Fields): string {
  const texts: string[] = [];
  while (!fields.isAtEnd) texts.push(quoted(fields.string()));
  return texts.join(" ");
}

function ipv6(bytes: Buffer): string {
  const groups = Array.from({ length: 8 }, (_, index) => bytes.readUInt16BE(2 * index).toString(16));
  return new URL(`http://[${groups.join(":")}]`).hostname.slice(1, -1);
}

const digest = (fields: Fields): string =>
  join(fields.number(2), fields.number(1), fields.number(1), hex(fields.bytes()));
const key = (fields: Fields): string =>
  join(fields.number(2), fields.number(1), fields.number(1), base64(fields.bytes()));
const association = (fields: Fields): string =>
  join(fields.number(1), fields.number(1), fields.number(1), hex(fields.bytes()));

/** Seconds as YYYYMMDDHHmmSS (RFC 4034, 3.2). */
const signatureTime = (seconds: number): string =>
  new Date(seconds * 1000).toISOString().replace(/\D/g, "").slice(0, 14);

function typeBitmap(fields: Fields): string {
  const names: string[] = [];
  while (!fields.isAtEnd) {
    const window = fields.number(1);
    for (const [index, byte] of fields.bytes(fields.number(1)).entries())
      for (let bit = 0; bit < 8; bit++)
        if ((byte & (0x80 >> bit)) !== 0) names.push(typeName(window * 256 + index * 8 + bit));
  }
  return names.join(" ");
}

const forms: Readonly<Record<number, (fields: Fields) => string>> = {
  [types.A]: (fields) => [...fields.bytes()].join("."),
  [types.AAAA]: (fields) => ipv6(fields.bytes()),
  [types.NS]: name,
  [types.CNAME]: name,
  [types.PTR]: name,
  [types.MX]: (fields) => join(fields.number(2), fields.name()),
  [types.TXT]: strings,
  [types.HINFO]: strings,
  [types.SOA]: (fields) =>
    join(
      fields.name(),
      fields.name(),
      ...[fields.number(4), fields.number(4), fields.number(4), fields.number(4), fields.number(4)],
    ),
  [types.SRV]: (fields) => join(fields.number(2), fields.number(2), fields.number(2), fields.name()),
  [types.NAPTR]: (fields) =>
    join(
      fields.number(2),
      fields.number(2),
      ...[quoted(fields.string()), quoted(fields.string()), quoted(fields.string())],
      fields.name(),
    ),
  [types.CAA]: (fields) => join(fields.number(1), fields.string().toString("latin1"), quoted(fields.bytes())),
  [types.URI]: (fields) => join(fields.number(2), fields.number(2), quoted(fields.bytes())),
  [types.DS]: digest,
  [types.CDS]: digest,
  [types.DNSKEY]: key,
  [types.CDNSKEY]: key,
  [types.TLSA]: association,
  [types.SMIMEA]: association,
  [types.SSHFP]: (fields) => join(fields.number(1), fields.number(1), hex(fields.bytes())),
  [types.OPENPGPKEY]: (fields) => base64(fields.bytes()),
  [types.RRSIG]: (fields) =>
    join(
      typeName(fields.number(2)),
      ...[fields.number(1), fields.number(1), fields.number(4)],
      ...[signatureTime(fields.number(4)), signatureTime(fields.number(4)), fields.number(2)],
      fields.name(),
      base64(fields.bytes()),
    ),
  [types.NSEC]: (fields) => join(fields.name(), typeBitmap(fields)),
};
