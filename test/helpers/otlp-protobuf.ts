/*
 * Decodes an ExportTraceServiceRequest of opentelemetry-proto 1.x from protobuf to its JSON mapping. Unlike other
 * decoders it refuses what it does not know: fields, wire types, repeated single fields, longer varints than needed,
 * and texts that are not UTF-8.
 */

type Read = (value: bigint | Buffer) => unknown;
interface Field {
  name: string;
  /** 0: varint, 1: 64 bits, 2: bytes, 5: 32 bits. */
  wire: 0 | 1 | 2 | 5;
  read: Read;
  isList?: true;
}
type Message = Readonly<Record<number, Field>>;

const text: Read = (bytes) => new TextDecoder("utf-8", { fatal: true }).decode(bytes as Buffer);
const hex: Read = (bytes) => (bytes as Buffer).toString("hex");
const number: Read = (value) => Number(value);
const inner =
  (message: () => Message): Read =>
  (bytes) =>
    decode(bytes as Buffer, message());

const any: Message = {
  1: { name: "stringValue", wire: 2, read: text },
  2: {
    name: "boolValue",
    wire: 0,
    read(value) {
      if (value !== 0n && value !== 1n) throw new Error("Expected a boolean");
      return value === 1n;
    },
  },
  3: { name: "intValue", wire: 0, read: (value) => String(BigInt.asIntN(64, value as bigint)) },
  4: { name: "doubleValue", wire: 1, read: (bytes) => (bytes as Buffer).readDoubleLE() },
};
const keyValue: Message = {
  1: { name: "key", wire: 2, read: text },
  2: { name: "value", wire: 2, read: inner(() => any) },
};
const attributes: Field = { name: "attributes", wire: 2, read: inner(() => keyValue), isList: true };
const time: Read = (bytes) => String((bytes as Buffer).readBigUInt64LE());
const flags: Read = (bytes) => (bytes as Buffer).readUInt32LE();
const link: Message = {
  1: { name: "traceId", wire: 2, read: hex },
  2: { name: "spanId", wire: 2, read: hex },
  3: { name: "traceState", wire: 2, read: text },
  4: attributes,
  6: { name: "flags", wire: 5, read: flags },
};
const status: Message = {
  2: { name: "message", wire: 2, read: text },
  3: { name: "code", wire: 0, read: number },
};
const span: Message = {
  1: { name: "traceId", wire: 2, read: hex },
  2: { name: "spanId", wire: 2, read: hex },
  3: { name: "traceState", wire: 2, read: text },
  4: { name: "parentSpanId", wire: 2, read: hex },
  5: { name: "name", wire: 2, read: text },
  6: { name: "kind", wire: 0, read: number },
  7: { name: "startTimeUnixNano", wire: 1, read: time },
  8: { name: "endTimeUnixNano", wire: 1, read: time },
  9: attributes,
  13: { name: "links", wire: 2, read: inner(() => link), isList: true },
  15: { name: "status", wire: 2, read: inner(() => status) },
  16: { name: "flags", wire: 5, read: flags },
};
const scope: Message = {
  1: { name: "name", wire: 2, read: text },
  2: { name: "version", wire: 2, read: text },
};
const scopeSpans: Message = {
  1: { name: "scope", wire: 2, read: inner(() => scope) },
  2: { name: "spans", wire: 2, read: inner(() => span), isList: true },
};
const resource: Message = { 1: attributes };
const resourceSpans: Message = {
  1: { name: "resource", wire: 2, read: inner(() => resource) },
  2: { name: "scopeSpans", wire: 2, read: inner(() => scopeSpans), isList: true },
};
const request: Message = {
  1: { name: "resourceSpans", wire: 2, read: inner(() => resourceSpans), isList: true },
};

function decode(bytes: Buffer, message: Message): Record<string, unknown> {
  const decoded: Record<string, unknown> = {};
  for (const { isList, name } of Object.values(message)) if (isList === true) decoded[name] = [];
  let at = 0;
  const varint = (): bigint => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[at++];
      if (byte === undefined) throw new Error("Expected a varint but the message ends");
      value |= BigInt(byte & 0x7f) << shift;
      if (byte > 0x7f) continue;
      if ((byte === 0 && shift > 0n) || value >= 2n ** 64n) throw new Error("A varint is too long");
      return value;
    }
  };
  const take = (length: number): Buffer => {
    if (at + length > bytes.length) throw new Error(`Expected ${length} bytes but the message ends`);
    return bytes.subarray(at, (at += length));
  };
  while (at < bytes.length) {
    const key = Number(varint());
    const field = message[key >> 3];
    if (field === undefined || field.wire !== (key & 7))
      throw new Error(`Unexpected field ${key >> 3} with wire type ${key & 7}`);
    const { name, wire, read, isList } = field;
    const value = wire === 0 ? varint() : take(wire === 2 ? Number(varint()) : wire === 1 ? 8 : 4);
    if (isList === true) (decoded[name] as unknown[]).push(read(value));
    else if (name in decoded) throw new Error(`Unexpected second ${name}`);
    else decoded[name] = read(value);
  }
  return decoded;
}

/** The request in the JSON mapping. Lists that are empty are there, too. */
export const decodeTraces = (bytes: Buffer): unknown => decode(bytes, request);
