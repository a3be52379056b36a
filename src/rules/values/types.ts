/**
 * The types of the language and the representation of their values. Types are written as in public messages:
 * `Bytes`, `Array(Bytes)`, `Map(Array(Int))`.
 */
export type ScalarType = "Bool" | "Bytes" | "Int" | "Ip";
export type Type = ScalarType | `Array(${string})` | `Map(${string})`;

/**
 * An IPv4 address is a 32-bit number. An IPv6 address is its 16 bytes as a latin1 string, which sorts like
 * the address.
 */
export type IpValue = number | string;
/** A signed 64-bit integer: a number if that is exact, else a bigint. */
export type IntValue = number | bigint;
/** Bytes are latin1 strings with one character for each byte. `undefined` always means a missing value. */
export type Value = boolean | number | bigint | string | readonly Value[] | ReadonlyMap<string, Value>;

/** The type of an element, for an array or a map. */
export function elementOf(type: Type): Type | undefined {
  if (type.startsWith("Array(")) return type.slice(6, -1) as Type;
  if (type.startsWith("Map(")) return type.slice(4, -1) as Type;
  return undefined;
}

export function isArray(type: Type): boolean {
  return type.startsWith("Array(");
}

export function isMap(type: Type): boolean {
  return type.startsWith("Map(");
}

/** The form of a type in "expected value of type …" messages: `Array<Bool>`. */
export function displayType(type: string): string {
  return type.replaceAll("(", "<").replaceAll(")", ">");
}

/** An integer in the form that `===` can compare. */
export function intOf(value: bigint): IntValue {
  return value >= BigInt(Number.MIN_SAFE_INTEGER) && value <= BigInt(Number.MAX_SAFE_INTEGER)
    ? Number(value)
    : value;
}

/** Encodes text as UTF-8, with one latin1 character for each byte. */
export function encodeUtf8(text: string): string {
  for (let i = 0; i < text.length; i++) {
    if (text.charCodeAt(i) > 0x7f) return Buffer.from(text, "utf8").toString("latin1");
  }
  return text;
}

/** Decodes bytes for display. Bytes that are not UTF-8 stay latin1. */
export function decodeUtf8(bytes: string): string {
  const decoded = Buffer.from(bytes, "latin1").toString("utf8");
  return decoded.includes("\ufffd") ? bytes : decoded;
}
