/** The subset of DER (ITU-T X.690) that X.509 certificates need. */
export type Der = Buffer;

const tagged = (tag: number, ...parts: readonly Uint8Array[]): Der => {
  const content = Buffer.concat(parts);
  const { length } = content;
  if (length < 128) return Buffer.concat([Buffer.from([tag, length]), content]);
  const bytes = length < 256 ? [length] : [length >> 8, length & 255];
  return Buffer.concat([Buffer.from([tag, 0x80 | bytes.length, ...bytes]), content]);
};

export const sequence = (...parts: readonly Der[]): Der => tagged(0x30, ...parts);
export const set = (...parts: readonly Der[]): Der => tagged(0x31, ...parts);
export const octets = (content: Uint8Array): Der => tagged(0x04, content);
export const utf8 = (text: string): Der => tagged(0x0c, Buffer.from(text));
export const boolean = (value: boolean): Der => tagged(0x01, Buffer.from([value ? 0xff : 0]));
export const bits = (content: Uint8Array, unused = 0): Der => tagged(0x03, Buffer.from([unused]), content);
/** A context-specific member [n]: constructed, or a string with an implicit tag. */
export const explicit = (n: number, ...parts: readonly Der[]): Der => tagged(0xa0 | n, ...parts);
export const implicit = (n: number, content: Uint8Array): Der => tagged(0x80 | n, content);

/** A positive integer from its bytes. */
export function integer(bytes: Uint8Array): Der {
  const start = bytes.findIndex((byte) => byte !== 0);
  const magnitude = start < 0 ? Buffer.from([0]) : Buffer.from(bytes.subarray(start));
  return magnitude[0]! >= 0x80 ? tagged(0x02, Buffer.from([0]), magnitude) : tagged(0x02, magnitude);
}

export function oid(dotted: string): Der {
  const [first = 0, second = 0, ...rest] = dotted.split(".").map(Number);
  const bytes = [first * 40 + second];
  for (const arc of rest) {
    const groups = [arc & 0x7f];
    for (let left = arc >> 7; left > 0; left >>= 7) groups.unshift((left & 0x7f) | 0x80);
    bytes.push(...groups);
  }
  return tagged(0x06, Buffer.from(bytes));
}

/** UTCTime until 2049, GeneralizedTime after it (RFC 5280, 4.1.2.5). */
export function time(date: Date): Der {
  const digits = date.toISOString().replace(/[-:T]|\.\d+/g, "");
  return date.getUTCFullYear() < 2050
    ? tagged(0x17, Buffer.from(digits.slice(2)))
    : tagged(0x18, Buffer.from(digits));
}
