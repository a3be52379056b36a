import { ByteWriter } from "./byte-writer.ts";

type Data = Readonly<Record<string, unknown>>;

/** The 16 bytes of a LOC record (RFC 1876 §2). */
export function locationBytes(data: Data): Buffer {
  const number = (name: string): number => data[name] as number;
  return new ByteWriter()
    .uint8(0)
    .uint8(sizeByte(number("size")))
    .uint8(sizeByte(number("precision_horz")))
    .uint8(sizeByte(number("precision_vert")))
    .uint32(angle(data, "lat", "N"))
    .uint32(angle(data, "long", "E"))
    .uint32(Math.round(number("altitude") * 100) + 10_000_000)
    .done();
}

/** An angle in milliseconds of arc. 2^31 is the equator or the prime meridian. */
function angle(data: Data, prefix: string, positive: string): number {
  const part = (name: string): number => data[`${prefix}_${name}`] as number;
  const size = (part("degrees") * 60 + part("minutes")) * 60_000 + Math.round(part("seconds") * 1000);
  return 2 ** 31 + (data[`${prefix}_direction`] === positive ? size : -size);
}

/** A length in centimetres as a digit and a power of ten, of four bits each. */
function sizeByte(metres: number): number {
  let [digit, power] = [Math.round(metres * 100), 0];
  while (digit > 9) {
    digit = Math.floor(digit / 10);
    power++;
  }
  return digit * 16 + power;
}
