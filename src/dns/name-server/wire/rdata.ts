import type { DnsRecord } from "../../records/record.ts";
import type { RecordTypeName } from "../../records/types/record-types.ts";
import { textChunks } from "../../records/types/text.ts";
import { ipv4Bytes, ipv6Bytes } from "./address.ts";
import { ByteWriter } from "./byte-writer.ts";
import { types } from "./constants.ts";
import { locationBytes } from "./location.ts";
import { nameBytes, nameKey } from "./name.ts";
import { serviceParameterBytes } from "./service-parameters.ts";

/** The parts of a record that its wire form depends on. */
export type EncodableRecord = Pick<DnsRecord, "type" | "content" | "data" | "priority">;

interface Members {
  number: (name: string) => number;
  text: (name: string) => string;
  /** A name without compression, because RFC 3597 §4 allows pointers only in the oldest types. */
  name: (name: string) => Buffer;
}

const hostBytes = ({ content }: EncodableRecord): Buffer => nameBytes(nameKey(content));

const association = (_: EncodableRecord, { number, text }: Members): Buffer =>
  new ByteWriter()
    .uint8(number("usage"))
    .uint8(number("selector"))
    .uint8(number("matching_type"))
    .bytes(Buffer.from(text("certificate"), "hex"))
    .done();

const serviceBinding = (_: EncodableRecord, { number, text, name }: Members): Buffer =>
  new ByteWriter()
    .uint16(number("priority"))
    .bytes(name("target"))
    .bytes(serviceParameterBytes(text("value")))
    .done();

/** Encodes each record type of the API. The files in records/types name the RFCs. */
const encoders: Record<RecordTypeName, (value: EncodableRecord, members: Members) => Buffer> = {
  A: ({ content }) => ipv4Bytes(content),
  AAAA: ({ content }) => ipv6Bytes(content),
  CNAME: hostBytes,
  NS: hostBytes,
  PTR: hostBytes,
  MX: (value) =>
    new ByteWriter()
      .uint16(value.priority ?? 0)
      .bytes(hostBytes(value))
      .done(),
  TXT: ({ content }) => {
    const writer = new ByteWriter();
    for (const chunk of textChunks(content)) writer.uint8(chunk.length).bytes(chunk);
    return writer.done();
  },
  OPENPGPKEY: ({ content }) => Buffer.from(content, "base64"),
  CAA: (_, { number, text }) =>
    new ByteWriter().uint8(number("flags")).characters(text("tag")).latin1(text("value")).done(),
  CERT: (_, { number, text }) =>
    new ByteWriter()
      .uint16(number("type"))
      .uint16(number("key_tag"))
      .uint8(number("algorithm"))
      .bytes(Buffer.from(text("certificate"), "base64"))
      .done(),
  DNSKEY: (_, { number, text }) =>
    new ByteWriter()
      .uint16(number("flags"))
      .uint8(number("protocol"))
      .uint8(number("algorithm"))
      .bytes(Buffer.from(text("public_key"), "base64"))
      .done(),
  DS: (_, { number, text }) =>
    new ByteWriter()
      .uint16(number("key_tag"))
      .uint8(number("algorithm"))
      .uint8(number("digest_type"))
      .bytes(Buffer.from(text("digest"), "hex"))
      .done(),
  HTTPS: serviceBinding,
  SVCB: serviceBinding,
  LOC: ({ data }) => locationBytes(data ?? {}),
  NAPTR: (_, { number, text, name }) =>
    new ByteWriter()
      .uint16(number("order"))
      .uint16(number("preference"))
      .characters(text("flags"))
      .characters(text("service"))
      .characters(text("regex"))
      .bytes(name("replacement"))
      .done(),
  SMIMEA: association,
  TLSA: association,
  SRV: (_, { number, name }) =>
    new ByteWriter()
      .uint16(number("priority"))
      .uint16(number("weight"))
      .uint16(number("port"))
      .bytes(name("target"))
      .done(),
  SSHFP: (_, { number, text }) =>
    new ByteWriter()
      .uint8(number("algorithm"))
      .uint8(number("type"))
      .bytes(Buffer.from(text("fingerprint"), "hex"))
      .done(),
  URI: ({ priority }, { number, text }) =>
    new ByteWriter()
      .uint16(priority ?? 0)
      .uint16(number("weight"))
      .latin1(text("target"))
      .done(),
};

export const typeNumber = (type: RecordTypeName): number => types[type];

/** The RDATA of a record in wire form, without compression. Expects a validated record. */
export function rdataOf(value: EncodableRecord): Buffer {
  const data = value.data ?? {};
  return encoders[value.type](value, {
    number: (name) => data[name] as number,
    text: (name) => data[name] as string,
    name: (name) => nameBytes(nameKey(data[name] as string)),
  });
}
