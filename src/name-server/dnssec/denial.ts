import { ByteWriter } from "../wire/byte-writer.ts";
import { types } from "../wire/constants.ts";
import { parentOf, type NameKey } from "../wire/name.ts";

const nameBytesMax = 255;
const labelBytesMax = 63;

/**
 * The rdata of the NSEC record that says of a name which types it has, or that it does not exist (RFC 9824). It covers
 * no other name: the next one that it gives is the first that could follow at all.
 */
export function nsecRdata(owner: NameKey, present: readonly number[] | undefined): Buffer {
  const listed = [...(present ?? [types.NXNAME]), types.RRSIG, types.NSEC];
  return new ByteWriter().latin1(nextName(owner)).bytes(bitmap(listed)).done();
}

/** The name that follows directly (RFC 4471 §3.1.1). */
function nextName(owner: NameKey): NameKey {
  if (owner.length + 2 <= nameBytesMax) return `\x01\0${owner}`;
  const length = owner.charCodeAt(0);
  const label = owner.slice(1, 1 + length);
  const rest = parentOf(owner);
  if (owner.length < nameBytesMax && length < labelBytesMax)
    return `${String.fromCharCode(length + 1)}${label}\0${rest}`;
  // The last byte of a name that is looked up is below 255 but in names made to be here, where any answer will do.
  const last = Math.min(label.charCodeAt(length - 1) + 1, 255);
  return `${String.fromCharCode(length)}${label.slice(0, -1)}${String.fromCharCode(last)}${rest}`;
}

/** RFC 4034 §4.1.2: windows of 256 types, each with only as many bytes as it needs. */
function bitmap(listed: readonly number[]): Buffer {
  const writer = new ByteWriter();
  const windows = Map.groupBy(
    [...new Set(listed)].sort((a, b) => a - b),
    (type) => type >> 8,
  );
  for (const [window, members] of windows) {
    const bits = Buffer.alloc(((members.at(-1)! & 255) >> 3) + 1);
    for (const type of members) bits[(type & 255) >> 3]! |= 0x80 >> (type & 7);
    writer.uint8(window).uint8(bits.length).bytes(bits);
  }
  return writer.done();
}
