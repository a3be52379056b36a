/* The wire format of protobuf, as texts whose characters are bytes. */

/** An unsigned number of less than 53 bits. */
export function varint(value: number): string {
  let text = "";
  let rest = value;
  for (; rest > 0x7f; rest = Math.floor(rest / 0x80)) text += String.fromCharCode((rest % 0x80) | 0x80);
  return text + String.fromCharCode(rest);
}

const wires = { varint: 0, fixed64: 1, length: 2, fixed32: 5 } as const;

/** The number of a field and the form of its value. */
export const tag = (field: number, wire: keyof typeof wires): string => varint(field * 8 + wires[wire]);

/** A field that is a text, bytes or a message. */
export const field = (number: number, value: string): string =>
  tag(number, "length") + varint(value.length) + value;

const ascii = /^[^\u0080-\uffff]*$/;
/** The bytes of a text in UTF-8. */
export const utf8 = (text: string): string =>
  ascii.test(text) ? text : Buffer.from(text.toWellFormed()).toString("latin1");

/** The bytes that hexadecimal digits mean. */
export const bytesOf = (hex: string): string => Buffer.from(hex, "hex").toString("latin1");

/** Reads the fields of a message: varints, and the bytes of others. Throws for a malformed message. */
export function* fieldsOf(message: Buffer): Generator<[number: number, value: number | Buffer]> {
  let at = 0;
  const next = (): number => {
    let value = 0;
    for (let factor = 1; ; factor *= 0x80) {
      const byte = message[at++];
      if (byte === undefined || factor > 2 ** 63) throw new Error("Expected a varint");
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) return value;
    }
  };
  const take = (length: number): Buffer => {
    if (at + length > message.length) throw new Error("Expected more bytes");
    return message.subarray(at, (at += length));
  };
  while (at < message.length) {
    const key = next();
    const wire = key % 8;
    const number = Math.floor(key / 8);
    if (wire === wires.varint) yield [number, next()];
    else if (wire === wires.length) yield [number, take(next())];
    else if (wire === wires.fixed64) yield [number, take(8)];
    else if (wire === wires.fixed32) yield [number, take(4)];
    else throw new Error(`Unexpected wire type ${wire}`);
  }
}
